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
    /// - Parameter store: instead of one in memory.
    public static func detached(
        clock: Clock, hasUsers: Bool, store: (any SharedStoring)? = nil
    ) -> ProviderContext.Services {
        ProviderContext.Services(
            clock: clock, http: OfflineServices(), store: store ?? MemoryStore(clock: clock),
            hashing: ThreadPool(name: "martlet-check", threads: 1, queue: 16, niceness: 0, clock: clock),
            users: hasUsers ? OfflineServices() : nil)
    }
}

/// Fails every operation, in place of external services.
private struct OfflineServices: KeyFetching, HTTPCalling, UserRecordStoring {
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
}
