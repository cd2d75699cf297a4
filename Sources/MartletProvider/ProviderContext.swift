public import MartletCore
public import MartletJOSE

/// What the core lends a provider: everything outside itself that it may use.
///
/// A provider never sees sockets, the store or the response.
public struct ProviderContext: Sendable {
    /// The provider's name in `providers:`.
    public let name: String
    public let clock: Clock
    /// Carries the provider's name on every line.
    public let logger: Logger

    private let makeIssuerKeys:
        @Sendable (String, Set<SignatureAlgorithm>, @escaping @Sendable ([KeyID]) -> Void) -> IssuerKeys
    private let forget: @Sendable () -> Void

    /// - Parameters:
    ///   - makeIssuerKeys: builds the key cache of one issuer: URL, allowed algorithms, what to do when keys go.
    ///   - forget: drops every verdict of this provider that loops have cached.
    public init(
        name: String, clock: Clock, logger: Logger,
        makeIssuerKeys:
            @escaping @Sendable (String, Set<SignatureAlgorithm>, @escaping @Sendable ([KeyID]) -> Void) -> IssuerKeys,
        forget: @escaping @Sendable () -> Void
    ) {
        self.name = name
        self.clock = clock
        self.logger = logger
        self.makeIssuerKeys = makeIssuerKeys
        self.forget = forget
    }

    /// The keys of an issuer, cached and shared as the `jwks:` block says.
    ///
    /// When keys leave the set, this provider's cached verdicts are forgotten.
    public func issuerKeys(at url: String, allowing algorithms: Set<SignatureAlgorithm>) -> IssuerKeys {
        makeIssuerKeys(url, algorithms) { [forget] _ in forget() }
    }

    /// Drops every verdict of this provider that is cached: each token is judged anew when next seen.
    public func forgetVerdicts() { forget() }
}
