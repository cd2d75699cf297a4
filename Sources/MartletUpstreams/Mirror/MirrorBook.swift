internal import MartletCore
package import MartletFetch
package import MartletTraffic

/// An upstream that gets copies.
package struct MirrorTarget: Sendable {
    /// One of its endpoints.
    package struct Endpoint: Sendable, Equatable {
        package let link: EndpointLink
        /// `Host`, where the upstream gets the endpoint's name.
        package let host: String
        package var weight = 1
        package var isBackup = false
        package var condition = EndpointCandidate.Condition.healthy

        package init(_ link: EndpointLink, host: String) { (self.link, self.host) = (link, host) }
    }

    package let upstream: String
    package var endpoints: [Endpoint] = []
    /// Percent of usable endpoints below which all are used; 0 is never.
    package var panicThreshold = 0
    package var connectTimeout = Duration.seconds(2)
    /// For the whole of a copy with its response.
    package var timeout = Duration.seconds(10)

    package init(_ upstream: String) { self.upstream = upstream }
}

/// The copies for an upstream, counted by outcome.
package struct MirrorCounts: Sendable, Equatable {
    /// The upstream has responded, whatever its status.
    package var sent = 0
    package var failed = 0
    /// There were too many.
    package var dropped = 0

    package init() {}
}

/// Decides which copies are sent, and to which endpoints. It knows neither clock nor network.
package struct MirrorBook: Sendable {
    /// What is to be done with a copy.
    package enum Decision: Sendable {
        case send(MirrorTarget.Endpoint, MirrorTarget)
        /// Too many are under way.
        case drop
        /// The upstream has no endpoint at the moment, or is no target any more.
        case fail
    }

    private struct Entry {
        var target: MirrorTarget
        var balancer = Balancer()
        var counts = MirrorCounts()
        var inFlight = 0
        var collected = 0
    }

    /// Copies that are on their way to one upstream at the same time.
    package static let maximumInFlight = SharedBound.mirrors.total
    /// Copies to one upstream whose bodies are arriving at the same time.
    package static let maximumCollected = 256

    private var entries: [String: Entry] = [:]

    package init() {}

    /// Whether no upstream gets copies.
    package var isEmpty: Bool { entries.isEmpty }
    /// By upstream.
    package var counts: [String: MirrorCounts] { entries.mapValues(\.counts) }

    /// Replaces the upstreams; those that stay keep their counters, and their turn while they have as many endpoints.
    package mutating func adopt(_ targets: [MirrorTarget]) {
        var next: [String: Entry] = [:]
        for target in targets {
            var entry = entries[target.upstream] ?? Entry(target: target)
            if entry.target.endpoints.count != target.endpoints.count { entry.balancer = Balancer() }
            entry.target = target
            next[target.upstream] = entry
        }
        entries = next
    }

    /// Begins to collect a copy.
    /// - Returns: whether there is room; ``release(_:)`` follows then.
    package mutating func collect(for upstream: String) -> Bool {
        // One that could not be sent now is unlikely to be sendable soon.
        guard let entry = entries[upstream] else { return false }
        guard entry.collected < Self.maximumCollected, entry.inFlight < Self.maximumInFlight else {
            entries[upstream]?.counts.dropped += 1
            return false
        }
        entries[upstream]?.collected += 1
        return true
    }

    /// A copy is complete or was given up.
    package mutating func release(_ upstream: String) {
        if let count = entries[upstream]?.collected { entries[upstream]?.collected = max(count - 1, 0) }
    }

    /// Begins to send a copy; ``finish(_:isSent:)`` follows unless it is dropped.
    package mutating func begin(_ upstream: String) -> Decision {
        guard let entry = entries[upstream] else { return .fail }
        guard entry.inFlight < Self.maximumInFlight else {
            entries[upstream]?.counts.dropped += 1
            return .drop
        }
        let candidates = entry.target.endpoints.map { endpoint in
            var candidate = EndpointCandidate()
            candidate.weight = Int64(endpoint.weight) * SlowStart.scale
            candidate.isBackup = endpoint.isBackup
            candidate.condition = endpoint.weight > 0 ? endpoint.condition : .drained
            return candidate
        }
        let choice = entries[upstream]?.balancer.choose(
            .roundRobin, hash: nil, avoiding: nil, panicThreshold: entry.target.panicThreshold, among: candidates.span)
        guard let choice, entry.target.endpoints.indices.contains(choice.position) else {
            entries[upstream]?.counts.failed += 1
            return .fail
        }
        entries[upstream]?.inFlight += 1
        return .send(entry.target.endpoints[choice.position], entry.target)
    }

    /// A copy has arrived, or has failed.
    package mutating func finish(_ upstream: String, isSent: Bool) {
        // It may have begun before a reload that removed the upstream.
        if let count = entries[upstream]?.inFlight { entries[upstream]?.inFlight = max(count - 1, 0) }
        if isSent { entries[upstream]?.counts.sent += 1 } else { entries[upstream]?.counts.failed += 1 }
    }
}
