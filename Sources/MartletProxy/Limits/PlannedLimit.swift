internal import MartletConfig
internal import MartletTraffic
private import Synchronization

/// What a limit counts: shared by its routes, and kept by a reload.
package final class LimitBuckets: Sendable {
    let table: RateTable
    let shared: SharedRateTable?
    let counts = LimitCounts()
    /// Whether the table is in use.
    let isLocal: Bool

    /// - Parameter client: where it counts in the store.
    init(_ limit: RateLimitConfiguration, entries: Int, client: StoreClient?) {
        isLocal = !limit.isShared || limit.onStoreError == .local
        table = RateTable(entries: isLocal ? entries : 1)
        shared = limit.isShared ? client.map { SharedRateTable(entries: entries, client: $0) } : nil
    }
}

/// How many requests a limit has let pass and rejected, over all event loops.
final class LimitCounts: Sendable {
    private let passed = Atomic<Int>(0)
    private let rejected = Atomic<Int>(0)

    /// The requests that it has let pass.
    var admitted: Int { passed.load(ordering: .relaxed) }

    /// The requests that it has rejected.
    var limited: Int { rejected.load(ordering: .relaxed) }

    /// Counts a request.
    func count(isAllowed: Bool) {
        if isAllowed { passed.add(1, ordering: .relaxed) } else { rejected.add(1, ordering: .relaxed) }
    }
}

/// One rate limit on one route: its buckets, and the parts of its keys.
final class PlannedLimit: Sendable {
    /// A part of a key; plain values, so that nothing is retained for a request.
    enum Part: Sendable, Equatable {
        case subject
        case provider
        case address
        case route
        case host
        /// Index of the name in ``PlannedLimit/headers``.
        case header(Int)
    }

    let name: String
    let nameBytes: [UInt8]
    let rate: TokenRate
    let parts: [Part]
    /// Names in lower case.
    let headers: [[UInt8]]
    let routeBytes: [UInt8]
    /// What this process counts; for a limit that counts in the store, while that does not respond.
    let table: RateTable
    /// The buckets in the store; `nil` for a limit of this process.
    let shared: SharedRateTable?
    let onStoreError: RateLimitConfiguration.StoreErrorPolicy
    let counts: LimitCounts

    init(_ limit: RateLimitConfiguration, route: String, _ buckets: LimitBuckets) {
        (table, shared, onStoreError) = (buckets.table, buckets.shared, limit.onStoreError)
        counts = buckets.counts
        routeBytes = Array(route.utf8)
        name = limit.name.value
        nameBytes = Array(name.utf8)
        rate = TokenRate(count: limit.rate.count, perSeconds: limit.rate.seconds, burst: limit.burst)
        var headers: [[UInt8]] = []
        parts = limit.keys.map { key in
            switch key {
            case .subject: return .subject
            case .provider: return .provider
            case .address: return .address
            case .route: return .route
            case .host: return .host
            case .header(let name):
                headers.append(Array(name.utf8))
                return .header(headers.count - 1)
            }
        }
        self.headers = headers
    }

    /// Whether the table of this process counts what the store grants, so that it continues without a full bucket.
    var countsAlong: Bool { onStoreError == .local }

    /// What it allows: an item of `RateLimit-Policy`.
    var policy: String { "\"\(name)\";q=\(rate.count);w=\(rate.seconds)" }
}
