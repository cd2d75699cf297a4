package import MartletConfig
package import MartletTraffic
private import Synchronization

/// What a limit counts: shared by its routes, and kept by a reload.
package final class LimitBuckets: Sendable {
    package let table: RateTable
    package let shared: SharedRateTable?
    package let counts = LimitCounts()
    /// Whether the table is in use.
    package let isLocal: Bool

    /// - Parameter client: where it counts in the store.
    package init(_ limit: RateLimitConfiguration, entries: Int, client: StoreClient?) {
        isLocal = !limit.isShared || limit.onStoreError == .local
        table = RateTable(entries: isLocal ? entries : 1)
        shared = limit.isShared ? client.map { SharedRateTable(entries: entries, client: $0) } : nil
    }
}

/// How many requests a limit has let pass and rejected, over all event loops.
package final class LimitCounts: Sendable {
    private let passed = Atomic<Int>(0)
    private let rejected = Atomic<Int>(0)

    /// The requests that it has let pass.
    package var admitted: Int { passed.load(ordering: .relaxed) }

    /// The requests that it has rejected.
    package var limited: Int { rejected.load(ordering: .relaxed) }

    /// Counts a request.
    package func count(isAllowed: Bool) {
        if isAllowed { passed.add(1, ordering: .relaxed) } else { rejected.add(1, ordering: .relaxed) }
    }
}

/// One rate limit on one route: its buckets, and the parts of its keys.
@usableFromInline package final class PlannedLimit: Sendable {
    /// A part of a key; plain values, so that nothing is retained for a request.
    package enum Part: Sendable, Equatable {
        case subject
        case provider
        case address
        case route
        case host
        /// Index of the name in ``PlannedLimit/headers``.
        case header(Int)
    }

    package let name: String
    package let nameBytes: [UInt8]
    /// What `RateLimit` has before the tokens that are left.
    package let announcement: [UInt8]
    package let rate: TokenRate
    /// What its keys begin with.
    package let keyStart = RateKeyBuilder()
    package let parts: [Part]
    /// Names in lower case.
    package let headers: [[UInt8]]
    package let routeBytes: [UInt8]
    /// What this process counts; for a limit that counts in the store, while that does not respond.
    package let table: RateTable
    /// The buckets in the store; `nil` for a limit of this process.
    package let shared: SharedRateTable?
    let onStoreError: RateLimitConfiguration.StoreErrorPolicy
    package let counts: LimitCounts

    package init(_ limit: RateLimitConfiguration, route: String, _ buckets: LimitBuckets) {
        (table, shared, onStoreError) = (buckets.table, buckets.shared, limit.onStoreError)
        counts = buckets.counts
        routeBytes = Array(route.utf8)
        name = limit.name.value
        nameBytes = Array(name.utf8)
        announcement = Array("\"\(name)\";r=".utf8)
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
    package var countsAlong: Bool { onStoreError == .local }

    /// What it allows: an item of `RateLimit-Policy`.
    package var policy: String { "\"\(name)\";q=\(rate.count);w=\(rate.seconds)" }
}
