internal import MartletConfig
internal import MartletLimits

/// One rate limit on one route: its buckets, and the parts of its keys.
final class PlannedLimit: Sendable {
    /// A part of a key; plain values, so that nothing is retained for a request.
    enum Part: Sendable, Equatable {
        case subject
        case provider
        case address
        /// The hash of the route's name.
        case route(Int)
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
    let table: RateTable

    init(_ limit: RateLimitConfiguration, route: String, table: RateTable) {
        name = limit.name.value
        nameBytes = Array(name.utf8)
        rate = TokenRate(count: limit.rate.count, perSeconds: limit.rate.seconds, burst: limit.burst)
        var headers: [[UInt8]] = []
        parts = limit.keys.map { key in
            switch key {
            case .subject: return .subject
            case .provider: return .provider
            case .address: return .address
            case .route: return .route(RateKey.hash(route))
            case .host: return .host
            case .header(let name):
                headers.append(Array(name.utf8))
                return .header(headers.count - 1)
            }
        }
        self.headers = headers
        self.table = table
    }

    /// What it allows: an item of `RateLimit-Policy`.
    var policy: String { "\"\(name)\";q=\(rate.count);w=\(rate.seconds)" }
}

/// The limits on requests of one route.
final class RouteLimitPlan: Sendable {
    /// Those that are decided before the credential is looked at come first.
    let limits: [PlannedLimit]
    /// How many of them come first.
    let countBeforeCaller: Int
    /// Whether every response tells what is left.
    let announces: Bool
    /// The value of `RateLimit-Policy`.
    let policy: [UInt8]
    /// The requests that may be under way at a time; `max` is unlimited.
    let concurrency: Int
    let counter: ConcurrencyCounter

    init(_ limits: [PlannedLimit], _ configuration: RouteLimitsConfiguration, counter: ConcurrencyCounter) {
        func needsCaller(_ limit: PlannedLimit) -> Bool {
            limit.parts.contains(.subject) || limit.parts.contains(.provider)
        }
        let first = limits.filter { !needsCaller($0) }
        self.limits = first + limits.filter(needsCaller)
        countBeforeCaller = first.count
        announces = configuration.announces
        policy = Array(self.limits.map(\.policy).joined(separator: ", ").utf8)
        concurrency = configuration.concurrency ?? .max
        self.counter = counter
    }
}
