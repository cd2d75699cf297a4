public import MartletCore
private import MartletJOSE

extension ProviderContext {
    /// A context without external services, for configuration checks and unit tests.
    ///
    /// The store is in memory; calls, keys and users are unavailable.
    public static func detached(_ name: String, clock: Clock, hasUsers: Bool) -> ProviderContext {
        detached(name, services: .detached(clock: clock, hasUsers: hasUsers))
    }

    /// A detached context with the given services.
    /// - Parameter prefix: of the keys in their store.
    public static func detached(
        _ name: String, services: Services, storeKeyPrefix prefix: String = "martlet:"
    ) -> ProviderContext {
        ProviderContext(
            name: name, services: services, logger: .silent, storeKeyPrefix: prefix,
            makeIssuerKeys: { url, algorithms, onRemoved in
                let hour = Duration.seconds(3600)
                return IssuerKeys(
                    url: url,
                    policy: IssuerKeysPolicy(
                        ttl: hour, maximumStale: hour, unknownKeyCooldown: hour, negativeTTL: hour, fetchTimeout: hour),
                    allowing: algorithms, fetcher: OfflineServices(), store: nil, storeKeyPrefix: "",
                    clock: services.clock, logger: .silent, onKeysRemoved: onRemoved)
            },
            forget: {})
    }
}

extension ProviderContext.Services {
    /// Services without network access, with a store in memory.
    /// - Parameters:
    ///   - store: instead of one in memory.
    ///   - keys: instead of none, or of keys that are unavailable.
    public static func detached(
        clock: Clock, hasUsers: Bool, store: (any PartitionedStoring)? = nil, keys: (any APIKeyStoring)? = nil
    ) -> ProviderContext.Services {
        ProviderContext.Services(
            clock: clock, http: OfflineServices(), store: store ?? MemoryStore(clock: clock),
            hashing: ThreadPool(.undivided, name: "martlet-check", threads: 1, queue: 16, niceness: 0, clock: clock),
            users: hasUsers ? OfflineServices() : nil, keys: keys ?? (hasUsers ? OfflineServices() : nil))
    }
}

/// Fails every operation, in place of external services.
private struct OfflineServices: KeyFetching, HTTPCalling, UserRecordStoring, APIKeyStoring {
    private static let outage = StoreError(code: "store.not_allowed", message: "the store is unavailable offline")

    func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8] {
        throw FetchError(code: "fetch.not_allowed", message: "fetching is not allowed offline")
    }

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        throw HTTPCallError(code: "fetch.not_allowed", message: "calls are not allowed offline")
    }

    func record(for key: String) async throws(StoreError) -> UserRecord? { throw Self.outage }

    func replaceHash(of key: String, from old: String, to new: String) async throws(StoreError) -> Bool {
        throw Self.outage
    }

    func removeRecord(for key: String) async throws(StoreError) -> Bool { throw Self.outage }

    func add(_ key: APIKeyRecord) async throws(StoreError) -> Bool { throw Self.outage }

    func key(_ id: String) async throws(StoreError) -> APIKeyRecord? { throw Self.outage }

    func keys(after start: String, limit: Int) async throws(StoreError) -> [APIKeyRecord] { throw Self.outage }

    func revoke(_ id: String, at now: UnixTime) async throws(StoreError) -> APIKeyRecord? { throw Self.outage }

    func rotate(
        _ id: String, to digest: [UInt8], acceptingPreviousUntil end: UnixTime?, at now: UnixTime
    ) async throws(StoreError) -> APIKeyRecord? { throw Self.outage }

    func noteUses(_ uses: [(id: String, at: UnixTime)]) async throws(StoreError) { throw Self.outage }

    func changes(since version: Int64?) async throws(StoreError) -> APIKeyChanges { throw Self.outage }
}
