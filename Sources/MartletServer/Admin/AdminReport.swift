internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis
internal import MartletRouter

/// Everything that the admin pages show, as plain values taken at one moment.
struct AdminReport: Sendable {
    /// How a provider is; one that cannot tell has no health.
    struct Provider: Sendable {
        let name: String
        let kind: String
        let health: ProviderHealth?
    }

    /// Where shared values are kept.
    enum Store: Sendable {
        case memory
        case redis(RedisStatus)
    }

    let readiness: Readiness
    /// One per loop that serves clients, as it last told.
    let loops: [LoopReport]
    /// How many loops told within their time; fewer than there are is a sign of trouble.
    let answeringLoops: Int
    /// The names of the routes in force, in their order.
    let routes: [String]
    /// What the gateway answers itself is counted under these names.
    var ownRoutes: Set<String> = []
    let providers: [Provider]
    let store: Store
    /// How the connection stands over which instances tell each other of ended sessions; `nil` for `memory:`.
    let listener: RedisStatus?
    /// `nil` without `accounts:`.
    let accounts: AccountHealth?
    /// Password hashes that wait for a thread.
    let hashesWaiting: Int
    /// Every certificate that listeners and upstreams get to see.
    let certificates: [WireSecurity.Shown]
    /// Which listeners there are.
    let addresses: [String]
    let droppedLogBatches: Int
    let reloads: ReloadRecord
    let process: ProcessStatus
    let startedAt: UnixTime
    let now: UnixTime
    let monotonicNow: MonotonicTime
    let version: String
}

extension AdminReport {
    /// - Parameters:
    ///   - loops: the reports of all loops, the last known one of a loop that is too busy to answer.
    ///   - answering: how many of them are fresh.
    init(_ gateway: Gateway, loops: [LoopReport], answering: Int) {
        let graph = gateway.graph
        let clock = gateway.services.clock
        self.loops = loops
        answeringLoops = answering
        routes = graph.blueprint.routes.configured.map(\.name)
        ownRoutes = Set(graph.blueprint.routes.routes.filter { $0.mount >= 0 }.map(\.name))
        providers = graph.providers.map {
            Provider(name: $0.name, kind: $0.kind.rawValue, health: $0.reporting?.health)
        }
        store = graph.store.redis.map { .redis($0.status) } ?? .memory
        listener = graph.store.listenerStatus
        accounts = graph.accounts?.store.health
        hashesWaiting = gateway.services.hashing.waiting
        readiness = Readiness(
            store: store, listener: listener, accounts: accounts, onError: graph.blueprint.configuration.store.onError,
            providers: providers,
            isDraining: gateway.isDraining)
        certificates = graph.blueprint.security.certificates
        addresses = gateway.addresses
        droppedLogBatches = gateway.services.sink.droppedBatches
        reloads = gateway.reloads
        process = ProcessStatus.current()
        startedAt = gateway.startedAt
        now = clock.unixTime
        monotonicNow = clock.monotonicTime
        version = Program.version
    }
}

/// What became of the configurations that the running process was asked to read again.
struct ReloadRecord: Sendable {
    private(set) var succeeded = 0
    private(set) var failed = 0
    /// When the configuration in force was taken over; at first the start.
    private(set) var loadedAt: UnixTime
    /// Whether the last one asked for is in force.
    private(set) var isLastInForce = true

    init(loadedAt: UnixTime) { self.loadedAt = loadedAt }

    mutating func note(success: Bool, at now: UnixTime) {
        isLastInForce = success
        if success {
            succeeded += 1
            loadedAt = now
        } else {
            failed += 1
        }
    }
}
