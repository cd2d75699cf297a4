/// One entry of `rate_limits:`.
@frozen package struct RateLimitConfiguration: Sendable {
    /// What a limit counts by.
    @frozen package enum Key: Sendable, Hashable {
        case subject
        case provider
        /// An IPv4 address, or the /64 of an IPv6 address.
        case address
        case route
        case host
        /// The first field of this name (lower case).
        case header(String)

        /// Whether it is known only once the caller is authenticated.
        package var needsCaller: Bool {
            switch self {
            case .subject, .provider: true
            case .address, .route, .host, .header: false
            }
        }

        /// The key as it is written in the file.
        package var text: String {
            switch self {
            case .subject: "subject"
            case .provider: "provider"
            case .address: "address"
            case .route: "route"
            case .host: "host"
            case .header(let name): "header:\(name)"
            }
        }
    }

    /// What a shared limit does while the store does not respond.
    @frozen package enum StoreErrorPolicy: String, ConfigurationChoice {
        /// Each process counts for itself.
        case local
        /// No request passes.
        case deny
        /// Every request passes.
        case allow
    }

    package var name: Located<String>
    /// All of them together are what it counts by; at least one.
    package var keys: [Key]
    package var rate: RequestRate
    /// How many requests may come at a time; at least 1.
    package var burst: Int
    package var isShared = false
    package var onStoreError = StoreErrorPolicy.local

    /// Whether it is decided behind the authenticator.
    package var needsCaller: Bool { keys.contains(where: \.needsCaller) }
}

/// `limits` of a route, but for its body.
@frozen package struct RouteLimitsConfiguration: Sendable {
    /// The names of its rate limits.
    package var rates: [Located<String>] = []
    /// Whether responses have RateLimit fields.
    package var announces = false
    /// The requests that may be under way at a time; `nil` is unlimited.
    package var concurrency: Int?

    package init() {}

    /// Whether there is none.
    package var isEmpty: Bool { rates.isEmpty && concurrency == nil }
}
