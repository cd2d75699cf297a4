internal import MartletConfig
internal import MartletCore
internal import MartletJOSE
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis
private import Synchronization

/// What one configuration was built into: store, providers, snapshot.
struct Graph: Sendable {
    let blueprint: Blueprint
    let store: Store
    let providers: [ProviderHandle]
    let snapshot: Snapshot
    /// The key caches that its providers use.
    let keyLabels: Set<KeyShelf.Label>

    /// The shared store and the connection behind it, if there is one.
    struct Store: Sendable {
        let values: any SharedStoring
        let redis: RedisClient?
        let url: String
    }

    /// Builds the graph; starts nothing but a new store connection.
    /// - Parameters:
    ///   - previous: what is serving now; its store and its issuers' keys are used on where they are the same.
    ///   - forget: drops cached verdicts of every loop.
    static func build(
        _ blueprint: Blueprint, _ services: Services, previous: Graph?, keys: KeyShelf,
        forget: @escaping @Sendable () -> Void
    ) throws(StartError) -> Graph {
        let store = try makeStore(blueprint, services, previous: previous?.store)
        let configuration = blueprint.configuration
        var providers: [ProviderHandle] = []
        let visit = keys.visit()
        for prepared in blueprint.providers {
            let context = context(prepared.name, configuration, services, store, visit, forget)
            do throws(ConfigurationError) {
                providers.append(try prepared.build(context))
            } catch {
                if store.url != previous?.store.url { store.redis?.shutdown() }
                throw StartError(code: error.code, message: error.description, exit: .configuration)
            }
        }
        let snapshot = Snapshot(
            routes: blueprint.routes, upstreams: configuration.upstreams.map { Upstream($0) }, providers: providers,
            server: configuration.server, signIn: SignInParts(sessions: nil, subjects: nil, handlers: []))
        return Graph(
            blueprint: blueprint, store: store, providers: providers, snapshot: snapshot, keyLabels: visit.labels)
    }

    private static func makeStore(
        _ blueprint: Blueprint, _ services: Services, previous: Store?
    ) throws(StartError) -> Store {
        let url = blueprint.configuration.store.url.value
        if let previous, previous.url == url { return previous }
        switch blueprint.store {
        case .memory: return Store(values: MemoryStore(clock: services.clock), redis: nil, url: url)
        case .redis(let parsed):
            do throws(StoreError) {
                let client = try RedisClient(
                    parsed, options: RedisOptions(), loop: services.loop, resolver: services.resolver,
                    clock: services.clock,
                    logger: services.logger.with(("room", "redis")))
                client.start()
                return Store(values: client, redis: client, url: url)
            } catch {
                throw StartError(code: error.code, message: error.message, exit: .configuration)
            }
        }
    }

    private static func context(
        _ name: String, _ configuration: GatewayConfiguration, _ services: Services, _ store: Store,
        _ keys: KeyShelf.Visit,
        _ forget: @escaping @Sendable () -> Void
    ) -> ProviderContext {
        let policy = IssuerKeysPolicy(configuration.jwks)
        let prefix = configuration.store.keyPrefix
        let logger = services.logger.with(("provider", name))
        return ProviderContext(
            name: name,
            services: ProviderContext.Services(
                clock: services.clock, http: HTTPCaller(fetcher: services.fetcher), store: store.values,
                hashing: services.hashing, users: nil),
            logger: logger, storeKeyPrefix: prefix,
            makeIssuerKeys: { url, algorithms, onRemoved in
                let label = KeyShelf.Label(
                    provider: name, url: url, algorithms: algorithms, policy: policy, store: store.url, prefix: prefix)
                return keys.keys(label) {
                    IssuerKeys(
                        url: url, policy: policy, allowing: algorithms, fetcher: KeyFetcher(fetcher: services.fetcher),
                        store: store.values, storeKeyPrefix: prefix, clock: services.clock, logger: logger,
                        onKeysRemoved: onRemoved)
                }
            },
            forget: forget)
    }
}

/// The key caches of issuers, kept across reloads: keys that are known stay known when the configuration changes elsewhere.
final class KeyShelf: Sendable {
    /// What makes two key caches the same.
    struct Label: Hashable, Sendable {
        let provider: String
        let url: String
        let algorithms: Set<SignatureAlgorithm>
        let policy: IssuerKeysPolicy
        let store: String
        let prefix: String
    }

    private let shelf = Mutex<[Label: IssuerKeys]>([:])

    /// The cache of that label, made on first use.
    fileprivate func keys(_ label: Label, make: () -> IssuerKeys) -> IssuerKeys {
        shelf.withLock { shelf in
            if let known = shelf[label] { return known }
            let made = make()
            shelf[label] = made
            return made
        }
    }

    /// Drops every other cache: what nobody uses is stopped for good, and its store may be gone.
    func keep(only labels: Set<Label>) {
        shelf.withLock { shelf in shelf = shelf.filter { labels.contains($0.key) } }
    }

    /// Begins to note what one configuration takes.
    func visit() -> Visit { Visit(self) }

    /// Takes caches for one configuration and remembers which.
    final class Visit: Sendable {
        private let shelf: KeyShelf
        private let taken = Mutex<Set<Label>>([])

        fileprivate init(_ shelf: KeyShelf) { self.shelf = shelf }

        var labels: Set<Label> { taken.withLock { $0 } }

        func keys(_ label: Label, make: () -> IssuerKeys) -> IssuerKeys {
            taken.withLock { _ = $0.insert(label) }
            return shelf.keys(label, make: make)
        }
    }
}

extension IssuerKeysPolicy {
    /// The `jwks:` block.
    init(_ configuration: JWKSConfiguration) {
        self.init(
            ttl: configuration.ttl, maximumStale: configuration.maximumStale,
            unknownKeyCooldown: configuration.unknownKeyCooldown, negativeTTL: configuration.negativeTTL,
            fetchTimeout: configuration.fetchTimeout)
    }
}
