public import MartletCore
public import MartletJOSE

/// What the core lends a provider: everything outside itself that it may use.
///
/// A provider never sees sockets, other providers' values or the response.
public struct ProviderContext: Sendable {
    /// The services of the process that every provider may use.
    public struct Services: Sendable {
        public let clock: Clock
        /// Calls other services.
        public let http: any HTTPCalling
        /// What instances share: nonces, codes that were used, throttles; ``ProviderContext/storeKey(_:)`` names its keys.
        public let store: any SharedStoring
        /// Threads for password hashes and other heavy work.
        public let hashing: WorkPool
        /// The password users of the account store; `nil` without `accounts`.
        public let users: (any UserRecordStoring)?

        public init(
            clock: Clock, http: any HTTPCalling, store: any SharedStoring, hashing: WorkPool,
            users: (any UserRecordStoring)?
        ) {
            self.clock = clock
            self.http = http
            self.store = store
            self.hashing = hashing
            self.users = users
        }
    }

    /// The provider's name in `providers:`.
    public let name: String
    /// Carries the provider's name on every line.
    public let logger: Logger
    private let services: Services
    private let storeKeyPrefix: String
    /// One for all providers and endpoints of a store, so that they have one key.
    package var nonces: NonceIssuer
    private let makeIssuerKeys:
        @Sendable (String, Set<SignatureAlgorithm>, @escaping @Sendable ([KeyID]) -> Void) -> IssuerKeys
    private let forget: @Sendable () -> Void

    /// - Parameters:
    ///   - storeKeyPrefix: what every key of the store begins with.
    ///   - makeIssuerKeys: builds the key cache of one issuer: URL, allowed algorithms, what to do when keys go.
    ///   - forget: drops every verdict of this provider that loops have cached.
    public init(
        name: String, services: Services, logger: Logger, storeKeyPrefix: String,
        makeIssuerKeys:
            @escaping @Sendable (String, Set<SignatureAlgorithm>, @escaping @Sendable ([KeyID]) -> Void) -> IssuerKeys,
        forget: @escaping @Sendable () -> Void
    ) {
        self.name = name
        self.services = services
        self.logger = logger
        self.storeKeyPrefix = storeKeyPrefix
        nonces = NonceIssuer(store: services.store, keyPrefix: storeKeyPrefix, clock: services.clock)
        self.makeIssuerKeys = makeIssuerKeys
        self.forget = forget
    }

    public var clock: Clock { services.clock }
    public var http: any HTTPCalling { services.http }
    public var store: any SharedStoring { services.store }
    public var hashing: WorkPool { services.hashing }
    public var users: (any UserRecordStoring)? { services.users }

    /// The store's key for a value of this provider; no other provider, and no part of the core, has the same.
    public func storeKey(_ suffix: String) -> String { "\(storeKeyPrefix)provider:\(name):\(suffix)" }

    /// The store's key for a value that all providers of a kind share, whatever their names: what may be used once at the
    /// service behind them.
    public func storeKey(sharedBy kind: ProviderKind, _ suffix: String) -> String {
        "\(storeKeyPrefix)kind:\(kind):\(suffix)"
    }

    /// Uses up a nonce that `POST /auth/nonce` gave out.
    ///
    /// - Returns: `answer` the first time, `miss` for one that was never given out, has expired or was used before.
    public func consumeNonce(_ nonce: String) async -> StoreAnswer<[UInt8]> { await nonces.use(nonce) }

    /// Whether a nonce looks like one that `POST /auth/nonce` gives out, and unlike any that an app would make.
    ///
    /// One that does and cannot be used up has expired or was used before: it is never an app's own.
    public func isIssued(_ nonce: String) -> Bool { nonce.utf8.starts(with: NonceIssuer.mark.utf8) }

    /// The keys of an issuer, cached and shared as the `jwks:` block says.
    ///
    /// When keys leave the set, this provider's cached verdicts are forgotten.
    public func issuerKeys(at url: String, allowing algorithms: Set<SignatureAlgorithm>) -> IssuerKeys {
        makeIssuerKeys(url, algorithms) { [forget] _ in forget() }
    }

    /// Drops every verdict of this provider that is cached: each token is judged anew when next seen.
    public func forgetVerdicts() { forget() }
}
