/// How an issuer's keys are fetched and cached: the `jwks:` block of the configuration.
public struct IssuerKeysPolicy: Sendable, Hashable {
    /// The lower bound of `ttl`, so that an issuer is not queried continuously.
    private static let shortestTTL = Duration.seconds(1)

    /// Keys are refreshed before they are this old.
    public let ttl: Duration
    /// The maximum age of keys while the issuer fails.
    public let maximumStale: Duration
    /// The minimum time between two fetches because of unknown key IDs.
    public let unknownKeyCooldown: Duration
    /// How long the absence of a key ID is cached.
    public let negativeTTL: Duration
    /// The timeout of one fetch.
    public let fetchTimeout: Duration

    public init(
        ttl: Duration, maximumStale: Duration, unknownKeyCooldown: Duration, negativeTTL: Duration,
        fetchTimeout: Duration
    ) {
        self.ttl = max(ttl, Self.shortestTTL)
        self.maximumStale = max(self.ttl, maximumStale)
        self.unknownKeyCooldown = unknownKeyCooldown
        self.negativeTTL = negativeTTL
        self.fetchTimeout = fetchTimeout
    }
}
