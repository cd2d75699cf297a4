public import MartletCore
public import MartletJOSE

/// The services that the core provides to a provider.
///
/// A provider has no access to sockets, to other providers' values or to the response.
public struct ProviderContext: Sendable {
    /// The process-wide services that every provider may use.
    public struct Services: Sendable {
        public let clock: Clock
        /// Calls external services.
        public let http: any HTTPCalling
        /// The store that instances share: nonces, used codes, throttles; ``ProviderContext/storeKey(_:)`` makes its
        /// keys.
        public let store: any PartitionedStoring
        /// Threads for password hashing and other CPU-bound work.
        public let hashing: ThreadPool
        /// The password users of the account store; `nil` without `accounts`.
        public let users: (any UserRecordStoring)?
        /// The API keys of the provider in the account store; `nil` without `accounts`.
        public let keys: (any APIKeyStoring)?
        /// The maximum length of a credential in bytes: `server.limits.token_bytes`.
        public var maximumTokenBytes = CompactJWS.maximumLength

        public init(
            clock: Clock, http: any HTTPCalling, store: any PartitionedStoring, hashing: ThreadPool,
            users: (any UserRecordStoring)?, keys: (any APIKeyStoring)? = nil
        ) {
            self.clock = clock
            self.http = http
            self.store = store
            self.hashing = hashing
            self.users = users
            self.keys = keys
        }
    }

    /// The provider's name in `providers:`.
    public let name: String
    /// Adds the provider's name to every line.
    public let logger: Logger
    private let services: Services
    private let storeKeyPrefix: String
    /// Shared by all providers and endpoints of a store, so that they use one key.
    package var nonces: NonceIssuer
    private let makeIssuerKeys:
        @Sendable (String, Set<SignatureAlgorithm>, @escaping @Sendable ([KeyID]) -> Void) -> IssuerKeys
    private let forget: @Sendable () -> Void
    private let forgetSubjects: @Sendable ([String]) -> Void

    /// - Parameters:
    ///   - storeKeyPrefix: the prefix of every key in the store.
    ///   - makeIssuerKeys: creates the key cache of one issuer: URL, allowed algorithms, callback for removed keys.
    ///   - forget: invalidates the decisions of this provider that event loops have cached.
    ///   - forgetSubjects: invalidates those about some subjects, in this process alone.
    public init(
        name: String, services: Services, logger: Logger, storeKeyPrefix: String,
        makeIssuerKeys:
            @escaping @Sendable (String, Set<SignatureAlgorithm>, @escaping @Sendable ([KeyID]) -> Void) -> IssuerKeys,
        forget: @escaping @Sendable () -> Void, forgetSubjects: @escaping @Sendable ([String]) -> Void = { _ in }
    ) {
        self.name = name
        self.services = services
        self.logger = logger
        self.storeKeyPrefix = storeKeyPrefix
        nonces = NonceIssuer(store: services.store, keyPrefix: storeKeyPrefix, clock: services.clock)
        self.makeIssuerKeys = makeIssuerKeys
        self.forget = forget
        self.forgetSubjects = forgetSubjects
    }

    public var clock: Clock { services.clock }
    public var http: any HTTPCalling { services.http }
    /// The store, by purpose and by who causes what is written: ``AuthenticationContext/owner``.
    public var store: any PartitionedStoring { services.store }
    public var hashing: ThreadPool { services.hashing }
    public var users: (any UserRecordStoring)? { services.users }
    public var keys: (any APIKeyStoring)? { services.keys }
    /// The maximum length of a credential in bytes.
    public var maximumTokenBytes: Int { services.maximumTokenBytes }

    /// The store key for a value of this provider, distinct from those of other providers and of the core.
    public func storeKey(_ suffix: String) -> String { "\(storeKeyPrefix)provider:\(name):\(suffix)" }

    /// The store key for a value that all providers of a kind share, whatever their names: a value that is single-use
    /// at the external service.
    public func storeKey(sharedBy kind: ProviderKind, _ suffix: String) -> String {
        "\(storeKeyPrefix)kind:\(kind):\(suffix)"
    }

    /// Consumes a nonce that `POST /auth/nonce` issued.
    ///
    /// - Parameter context: that of the login, whose network has a share of what is stored.
    /// - Returns: `answer` the first time, `miss` for one that was not issued, has expired or was used before.
    public func consumeNonce(_ nonce: String, in context: AuthenticationContext) async -> StoreReply<[UInt8]> {
        await nonces.consume(nonce, for: context.owner)
    }

    /// Whether a nonce has the form of those that `POST /auth/nonce` issues, which no app would create.
    ///
    /// Such a nonce that cannot be consumed has expired or was used before.
    public func isIssued(_ nonce: String) -> Bool { nonce.utf8.starts(with: NonceIssuer.prefix.utf8) }

    /// The keys of an issuer, cached and shared as configured by `jwks:`.
    ///
    /// When keys are removed from the set, the cached decisions of this provider are invalidated.
    public func issuerKeys(at url: String, allowing algorithms: Set<SignatureAlgorithm>) -> IssuerKeys {
        makeIssuerKeys(url, algorithms) { [forget] _ in forget() }
    }

    /// Invalidates all cached decisions of this provider: each token is verified again on its next use.
    public func invalidateDecisions() { forget() }

    /// Invalidates the cached decisions of this instance about some subjects, and no others: their credentials are
    /// verified again on the next use, and those of requests in progress immediately.
    /// - Parameter subjects: as upstreams see them: ``subject(_:)``, or those of accounts.
    public func invalidateDecisions(of subjects: [String]) {
        if !subjects.isEmpty { forgetSubjects(subjects) }
    }

    /// The subject that upstreams see for one of this provider's without an account: see ``SubjectSource/provider``.
    public func subject(_ providerSubject: String) -> String { "\(name):\(providerSubject)" }
}
