package import MartletCore
package import MartletIO

/// A lookup that is repeated.
package struct NameRequest: Sendable, Hashable {
    package let question: NameQuestion
    /// The longest time between two lookups.
    package let refresh: Duration

    package init(_ question: NameQuestion, refresh: Duration) { (self.question, self.refresh) = (question, refresh) }
}

/// Decides when a name is looked up, and which addresses it has. It knows neither clock nor network.
package struct NameBook: Sendable {
    /// What a lookup has changed.
    package struct Change: Sendable, Equatable {
        /// Whether the name has other addresses than before.
        package var hasChanged = false
        /// Why no address was found; `nil` if one was.
        package var failure: String?
        /// Whether the last known addresses have become too old.
        package var hasLapsed = false
        /// How many addresses were found, if those are too many.
        package var excess: Int?

        package init() {}
    }

    private struct Addresses {
        var list: [SocketEndpoint] = []
        var seen: MonotonicTime?

        /// Adopts the result of a lookup.
        /// - Parameters:
        ///   - hasOther: whether the lookup has found addresses of either family.
        ///   - keep: how long unconfirmed addresses are kept.
        mutating func note(_ part: NameReply.Part, hasOther: Bool, keep: Duration, at now: MonotonicTime) {
            switch part {
            case .found(let list, _) where !list.isEmpty: (self.list, seen) = (list, now)
            case .unasked: (list, seen) = ([], nil)
            // The name exists, and has the other kind of addresses only.
            case .absent where hasOther, .found where hasOther: (list, seen) = ([], nil)
            case .absent, .failed, .found:
                if let since = seen, now.since(since) >= keep { (list, seen) = ([], nil) }
            }
        }
    }

    private struct Entry {
        var ipv4 = Addresses()
        var ipv6 = Addresses()
        /// IPv4 first, each in the order of their bytes.
        var addresses: [SocketEndpoint] = []
        var due: MonotonicTime
        var isInFlight = false
        /// Whether a lookup has ended.
        var isKnown = false
    }

    /// The maximum number of addresses of a name.
    package static let maximumAddresses = 1000
    /// The least validity of addresses, whatever their TTL.
    static let leastValidity = Duration.seconds(1)
    /// After this much time a failed lookup is repeated, unless `refresh` is shorter.
    static let retry = Duration.seconds(5)
    /// For so many times `refresh` the last known addresses are kept when lookups fail.
    static let keptFactor = 10
    /// The largest share of an interval by which it is shortened at random.
    private static let jitter = 0.1

    private var entries: [NameRequest: Entry] = [:]

    package init() {}

    /// When the next lookup is due; `nil` while there is none.
    package var nextDue: MonotonicTime? { entries.values.filter { !$0.isInFlight }.map(\.due).min() }

    /// The addresses of a name, with the port 0.
    package func addresses(of request: NameRequest) -> [SocketEndpoint] { entries[request]?.addresses ?? [] }

    /// Adds names, whose lookup is due.
    /// - Returns: those that no lookup has ended for.
    package mutating func add(_ requests: Set<NameRequest>, at now: MonotonicTime) -> [NameRequest] {
        for request in requests where entries[request] == nil { entries[request] = Entry(due: now) }
        return requests.filter { entries[$0]?.isKnown == false }
    }

    /// Drops all other names.
    package mutating func retain(_ requests: Set<NameRequest>) {
        entries = entries.filter { requests.contains($0.key) }
    }

    /// Begins a lookup, unless one is in flight.
    package mutating func begin(_ request: NameRequest) -> Bool {
        guard var entry = entries[request], !entry.isInFlight else { return false }
        entry.isInFlight = true
        entries[request] = entry
        return true
    }

    /// Begins every lookup that is due.
    package mutating func beginDue(at now: MonotonicTime) -> [NameRequest] {
        let due = entries.filter { !$0.value.isInFlight && $0.value.due <= now }.map(\.key)
        for request in due { entries[request]?.isInFlight = true }
        return due
    }

    /// Notes what a lookup has found out, and when the next one is due.
    /// - Parameter random: between 0 and 1; how much of the jitter shortens the interval.
    /// - Returns: `nil` for a name that is gone.
    package mutating func finish(
        _ request: NameRequest, _ reply: NameReply, at now: MonotonicTime, random: Double
    ) -> Change? {
        guard var entry = entries[request] else { return nil }
        var change = Change()
        let found = [reply.ipv4, reply.ipv6].compactMap { $0.foundValidity(or: request.refresh) }
        let keep = request.refresh * Self.keptFactor
        entry.ipv4.note(reply.ipv4, hasOther: !found.isEmpty, keep: keep, at: now)
        entry.ipv6.note(reply.ipv6, hasOther: !found.isEmpty, keep: keep, at: now)
        let sorted = Self.sorted(entry.ipv4.list) + Self.sorted(entry.ipv6.list)
        if sorted.count > Self.maximumAddresses { change.excess = sorted.count }
        let addresses = Array(sorted.prefix(Self.maximumAddresses))
        change.hasChanged = addresses != entry.addresses
        change.failure = found.isEmpty ? reply.failure : nil
        change.hasLapsed = addresses.isEmpty && !entry.addresses.isEmpty
        entry.addresses = addresses
        let interval = min(found.min() ?? Self.retry, reply.hasFailed ? Self.retry : request.refresh, request.refresh)
        let shortened = max(interval, Self.leastValidity) * (1 - Self.jitter * min(max(random, 0), 1))
        entry.due = now + max(shortened, Self.leastValidity)
        (entry.isInFlight, entry.isKnown) = (false, true)
        entries[request] = entry
        return change
    }

    /// Without duplicates, in the order of their bytes.
    private static func sorted(_ addresses: [SocketEndpoint]) -> [SocketEndpoint] {
        Set(addresses).map { ($0.addressBytes, $0) }
            .sorted { $0.0.lexicographicallyPrecedes($1.0) }
            .map(\.1)
    }
}

extension NameReply {
    /// Why it has no address.
    fileprivate var failure: String {
        for part in [ipv4, ipv6] { if case .failed(let reason) = part { return reason } }
        for part in [ipv4, ipv6] { if case .absent(let reason) = part { return reason } }
        return "no address"
    }

    /// Whether a family is unknown.
    fileprivate var hasFailed: Bool {
        for part in [ipv4, ipv6] { if case .failed = part { return true } }
        return false
    }
}

extension NameReply.Part {
    /// How long found addresses are valid; `nil` without addresses.
    fileprivate func foundValidity(or other: Duration) -> Duration? {
        guard case .found(let list, let validity) = self, !list.isEmpty else { return nil }
        return validity ?? other
    }
}
