public import MartletCore
private import MartletJOSE

extension ProviderContext {
    /// A context in which nothing outside can be reached: for checks of a configuration, and for unit tests.
    ///
    /// The store is one in memory; calls, keys and users answer that they are unavailable.
    public static func detached(_ name: String, clock: Clock, hasUsers: Bool) -> ProviderContext {
        detached(name, services: .detached(clock: clock, hasUsers: hasUsers))
    }

    /// The same with services of one's own.
    public static func detached(_ name: String, services: Services) -> ProviderContext {
        ProviderContext(
            name: name, services: services, logger: .silent, storeKeyPrefix: "martlet:",
            makeIssuerKeys: { url, algorithms, onRemoved in
                let hour = Duration.seconds(3600)
                return IssuerKeys(
                    url: url,
                    policy: IssuerKeysPolicy(
                        ttl: hour, maximumStale: hour, unknownKeyCooldown: hour, negativeTTL: hour, fetchTimeout: hour),
                    allowing: algorithms, fetcher: NothingOutside(), store: nil, storeKeyPrefix: "",
                    clock: services.clock, logger: .silent, onKeysRemoved: onRemoved)
            },
            forget: {})
    }
}

extension ProviderContext.Services {
    /// Services in which nothing outside can be reached, with a store in memory.
    public static func detached(clock: Clock, hasUsers: Bool) -> ProviderContext.Services {
        ProviderContext.Services(
            clock: clock, http: NothingOutside(), store: MemoryStore(clock: clock),
            hashing: WorkPool(name: "martlet-check", threads: 1, queue: 16, niceness: 0, clock: clock),
            users: hasUsers ? NothingOutside() : nil)
    }
}

/// Stands where nothing may be reached.
private struct NothingOutside: KeyFetching, HTTPCalling, UserRecordStoring {
    private static let outage = StoreError(code: "store.not_allowed", message: "a check asks nobody")

    func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8] {
        throw FetchError(code: "fetch.not_allowed", message: "a check fetches nothing")
    }

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPAnswer {
        throw HTTPCallError(code: "fetch.not_allowed", message: "a check calls nobody")
    }

    func record(for key: String) async throws(StoreError) -> UserRecord? { throw Self.outage }

    func replaceHash(of key: String, from old: String, to new: String) async throws(StoreError) -> Bool {
        throw Self.outage
    }

    func removeRecord(for key: String) async throws(StoreError) -> Bool { throw Self.outage }
}
