internal import MartletDecisions
internal import MartletResponder

/// What is counted of requests by their upstream and by the provider of their credential.
struct PeerCounters: ~Copyable {
    private static let buckets = RouteCounters.bounds.count + 1
    /// Of an upstream: requests, those with 5xx, the sum of their durations in microseconds, and the buckets of these.
    private static let width = buckets + 3

    /// By the index of the upstream, which is stable across reloads.
    private var upstreams = FlatList<Int>()
    /// By the number of the provider in the configuration.
    private var providers = FlatList<Int>()
    /// What was counted under other numbers.
    private var earlier: [String: Int] = [:]
    private var providerNames: [String] = []

    /// Counts the upstreams and the providers of a configuration from now on.
    mutating func adopt(_ directory: borrowing UpstreamDirectory, _ snapshot: Snapshot) {
        adopt(
            upstreams: directory.clusters.count,
            providers: snapshot.providerTexts.map { String(decoding: $0, as: UTF8.self) })
    }

    /// The same by the number of upstreams, and the names of the providers.
    mutating func adopt(upstreams count: Int, providers names: [String]) {
        let missing = count * PeerCounters.width - upstreams.count
        if missing > 0 { upstreams.append(0, times: missing) }
        for (number, name) in providerNames.enumerated() { earlier[name, default: 0] &+= providers[number] }
        providers.removeAll()
        providers.append(0, times: names.count)
        providerNames = names
    }

    /// Counts a finished request.
    /// - Parameters:
    ///   - upstream: its index; negative for none.
    ///   - provider: its number; negative for none.
    ///   - bucket: of its duration.
    @inline(__always)
    mutating func count(upstream: Int, provider: Int, status: Int, bucket: Int, microseconds: Int) {
        if upstream >= 0, upstream &* PeerCounters.width < upstreams.count {
            let first = upstream &* PeerCounters.width
            upstreams[first] &+= 1
            if status >= 500 { upstreams[first &+ 1] &+= 1 }
            upstreams[first &+ 2] &+= microseconds
            upstreams[first &+ 3 &+ bucket] &+= 1
        }
        if provider >= 0, provider < providers.count { providers[provider] &+= 1 }
    }

    /// Takes a request out of the count in advance that names a provider, but has none of its credentials.
    mutating func discount(provider: Int) {
        if provider >= 0, provider < providers.count { providers[provider] &-= 1 }
    }

    /// Adds what was counted to a report.
    /// - Parameter names: the names of the upstreams, and their indices.
    func add(to report: inout LoopReport, upstreams names: [(name: String, index: Int)]) {
        for (name, index) in names where index * PeerCounters.width < upstreams.count {
            let first = index * PeerCounters.width
            var buckets: [Int] = []
            for bucket in 0..<PeerCounters.buckets { buckets.append(upstreams[first + 3 + bucket]) }
            report.upstreams.append(
                .init(
                    name: name, requests: upstreams[first], errors: upstreams[first + 1], buckets: buckets,
                    sumMicroseconds: upstreams[first + 2]))
        }
        report.providers = earlier
        for (number, name) in providerNames.enumerated() { report.providers[name, default: 0] &+= providers[number] }
    }
}
