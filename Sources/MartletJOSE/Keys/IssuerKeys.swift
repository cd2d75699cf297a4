public import MartletCore

/// The keys of one issuer.
public final class IssuerKeys: Sendable {
    /// What a look-up by key id came to.
    public enum Lookup: Sendable {
        case key(VerificationKey)
        /// The issuer has such a key, but it may not be used.
        case unusable
        /// The issuer has no such key.
        case unknown
        /// A fetch may settle it; ask ``IssuerKeys/settle(_:)``.
        case undecided
        /// There are no keys at all.
        case unavailable
    }

    public init(
        url: String, policy: IssuerKeysPolicy, allowing: Set<SignatureAlgorithm>, fetcher: any KeyFetching,
        store: (any KeyValueStoring)?, storeKeyPrefix: String, clock: Clock, logger: Logger,
        onKeysRemoved: @escaping @Sendable ([KeyID]) -> Void
    ) {}

    public func lookup(_ id: KeyID) -> Lookup { .unavailable }
    public func settle(_ id: KeyID) async -> Lookup { .unavailable }
    public func start() async {}
    public func stop() async {}

    /// How the keys stand now.
    public var status: IssuerKeysStatus {
        IssuerKeysStatus(
            keyIDs: [], source: .none, age: nil, isStale: false, fetches: 0, failures: 0, lastError: nil, nextRefresh: nil)
    }
}
