/// How an issuer's keys are fetched and kept: the `jwks:` block of the configuration.
public struct IssuerKeysPolicy: Sendable, Hashable {
    /// Whatever is configured, an issuer is not asked without a pause.
    private static let shortestTTL = Duration.seconds(1)

    /// Keys are refreshed before they are this old.
    public let ttl: Duration
    /// Keys are used up to this age when the issuer fails.
    public let maximumStale: Duration
    /// At most one fetch in so much time because of key ids that nobody knows.
    public let unknownKeyCooldown: Duration
    /// How long an id is remembered that the issuer does not have.
    public let negativeTTL: Duration
    /// How long one fetch may take.
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
