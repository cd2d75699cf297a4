internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletJOSE
internal import MartletProvider
internal import MartletProxy
internal import MartletRouter
internal import MartletSession
internal import MartletSignIn
private import Synchronization

/// What one configuration was built into: store, accounts, providers, snapshot.
struct Graph: Sendable {
    let blueprint: Blueprint
    let store: SharedStore
    let accounts: OpenAccounts?
    let sessions: SessionStore
    let providers: [ProviderHandle]
    let snapshot: Snapshot
    /// The key caches that its providers use.
    let keyLabels: Set<KeyShelf.Label>

    /// Builds the graph; starts nothing but a new store connection.
    /// - Parameters:
    ///   - previous: what is serving now; its store, its accounts and its issuers' keys are used on where they are the same.
    ///   - forgetting: tells the loops what they must not believe any more.
    ///   - access: what is done with the stores.
    static func build(
        _ blueprint: Blueprint, _ services: Services, previous: Graph?, keys: KeyShelf, forgetting: ForgetSwitch,
        access: StoreAccess = .full
    ) throws(StartError) -> Graph {
        let configuration = blueprint.configuration
        let accounts = try OpenAccounts.make(
            configuration.accounts, services, previous: previous?.accounts, access: access)
        let store: SharedStore
        if let previous, previous.store.label == SharedStore.Label(configuration.store) {
            store = previous.store
        } else {
            store = try SharedStore.make(blueprint, services, forgetting, access: access)
        }
        let visit = keys.visit()
        let parts = Parts(services: services, store: store, accounts: accounts?.store, keys: visit)
        var providers: [ProviderHandle] = []
        for prepared in blueprint.providers {
            do throws(ConfigurationError) {
                providers.append(try prepared.build(context(prepared.name, configuration, parts)))
            } catch {
                if store !== previous?.store { store.shutdown() }
                throw StartError(code: error.code, message: error.description, exit: .configuration)
            }
        }
        let sessions = SessionStore(
            policy: SessionPolicy(configuration.sessions), backend: store.sessions, clock: services.clock,
            onRevoked: { numbers in
                store.copies?.drop(numbers)
                await forgetting.revokedHere(numbers)
            })
        let snapshot = Snapshot(
            routes: blueprint.routes,
            upstreams: zip(configuration.upstreams, blueprint.security.upstreams).map { Upstream($0, tls: $1) },
            providers: providers,
            server: configuration.server,
            signIn: signIn(configuration, blueprint, parts, providers, sessions))
        return Graph(
            blueprint: blueprint, store: store, accounts: accounts, sessions: sessions, providers: providers,
            snapshot: snapshot, keyLabels: visit.labels)
    }

    /// What providers and endpoints are built from.
    private struct Parts {
        let services: Services
        let store: SharedStore
        let accounts: (any AccountStoring)?
        let keys: KeyShelf.Visit
    }

    private static func signIn(
        _ configuration: GatewayConfiguration, _ blueprint: Blueprint, _ parts: Parts, _ providers: [ProviderHandle],
        _ sessions: SessionStore
    ) -> SignInParts {
        let (store, clock) = (parts.store, parts.services.clock)
        var setup = SignInSetup(
            providers: providers, sessions: sessions, accounts: parts.accounts, store: store.values,
            storeKeyPrefix: store.label.prefix, configuration: configuration.sessions,
            wellKnown: configuration.wellKnown, keySet: blueprint.assertion?.keySet, clock: clock,
            logger: parts.services.logger.with(("room", "signin")),
            forgetVerdicts: { await store.forgetEverywhere($0) })
        setup.nonces = store.nonces
        let endpoints = SignInEndpoints(setup)
        return SignInParts(
            sessions: judging(sessions, configuration.store, store, clock),
            subjects: parts.accounts.map { AccountSubjects(accounts: $0, clock: clock) },
            assertion: blueprint.assertion,
            handlers: blueprint.routes.routes.filter { $0.mount >= 0 }.map { _ in endpoints.answer })
    }

    /// What judges session tokens: under `on_error: cached` with copies for all loops.
    private static func judging(
        _ sessions: SessionStore, _ configuration: StoreConfiguration, _ store: SharedStore, _ clock: Clock
    ) -> any SessionJudging {
        guard configuration.onError == .cached, let copies = store.copies else { return sessions }
        return SessionsWithCopies(sessions, copies: copies, clock: clock)
    }

    private static func context(
        _ name: String, _ configuration: GatewayConfiguration, _ parts: Parts
    ) -> ProviderContext {
        let policy = IssuerKeysPolicy(configuration.jwks)
        let (services, store, keys) = (parts.services, parts.store, parts.keys)
        let logger = services.logger.with(("provider", name))
        var context = ProviderContext(
            name: name,
            services: ProviderContext.Services(
                clock: services.clock, http: HTTPCaller(fetcher: services.fetcher, provider: name),
                store: store.values,
                hashing: services.hashing, users: parts.accounts),
            logger: logger, storeKeyPrefix: store.label.prefix,
            makeIssuerKeys: { url, algorithms, onRemoved in
                let label = KeyShelf.Label(
                    provider: name, url: url, algorithms: algorithms, policy: policy, store: store.label)
                return keys.keys(label) {
                    IssuerKeys(
                        url: url, policy: policy, allowing: algorithms, fetcher: KeyFetcher(fetcher: services.fetcher),
                        store: store.values.partition(.keys), storeKeyPrefix: store.label.prefix,
                        clock: services.clock, logger: logger,
                        onKeysRemoved: onRemoved)
                }
            },
            forget: { store.forgetEverywhere() })
        context.nonces = store.nonces
        return context
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
        let store: SharedStore.Label
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

extension SessionPolicy {
    /// The `sessions:` block.
    init(_ configuration: SessionsConfiguration) {
        self.init()
        accessTTL = configuration.accessTTL
        refreshTTL = configuration.refreshTTL
        idleTimeout = configuration.idleTimeout
        refreshReuseGrace = configuration.refreshReuseGrace
        maximumPerSubject = configuration.maximumPerSubject
        cacheTTL = configuration.cacheTTL
    }
}
