package import MartletAccounts
internal import MartletAudit
internal import MartletAuthenticator
package import MartletConfig
internal import MartletCore
package import MartletDecisions
internal import MartletEvents
internal import MartletFetch
internal import MartletIdentities
internal import MartletJOSE
package import MartletProvider
internal import MartletResponder
internal import MartletRouter
package import MartletSession
internal import MartletSignIn

/// The objects built from one configuration: store, accounts, providers, snapshot.
package struct Graph: Sendable {
    package let blueprint: Blueprint
    package let store: SharedStore
    package let accounts: OpenAccounts?
    /// `nil` without webhooks and a mail server.
    let events: EventDelivery?
    /// `nil` without accounts.
    let jobs: IdentityJobs?
    let sessions: SessionStore
    /// Makes gateways apply the claims of an account; `nil` without accounts.
    let claims: ClaimPublisher?
    let operatorSessions: OperatorSessions
    /// What is done about identities beyond their login; `nil` without accounts.
    let life: IdentityLife?
    package let providers: [ProviderHandle]
    package let snapshot: Snapshot
    /// The issuer key caches that its providers use.
    let issuerKeys: Set<IssuerKeysRegistry.Label>

    /// Builds the graph; starts nothing but a new store connection.
    /// - Parameters:
    ///   - previous: the serving graph; its store, accounts and issuer keys are reused where their configuration is the
    ///     same.
    ///   - invalidator: invalidates cached decisions of the loops.
    ///   - access: whether the stores may be written to.
    ///   - shared: a store to use instead of one of its own.
    ///   - accessLog: where access lines go, and what they have.
    package static func build(
        _ blueprint: Blueprint, _ services: Services, previous: Graph?, keys: IssuerKeysRegistry,
        invalidator: CacheInvalidator, access: StoreAccess = .full, store shared: SharedStore? = nil,
        accessLog: AccessPlan = .standard
    ) throws(StartError) -> Graph {
        let configuration = blueprint.configuration
        let accounts = try OpenAccounts.make(
            configuration.accounts, services, previous: previous?.accounts, access: access)
        let events = try events(blueprint, accounts, services)
        let store: SharedStore
        if let shared {
            store = shared
        } else if let previous, previous.store.label == SharedStore.Label(configuration.store) {
            store = previous.store
        } else {
            store = try SharedStore.make(
                blueprint, services, invalidator, previous: previous?.store, access: access)
        }
        let lease = keys.lease()
        let parts = Parts(services: services, store: store, accounts: accounts?.store, keys: lease)
        var providers: [ProviderHandle] = []
        for prepared in blueprint.providers {
            do throws(ConfigurationError) {
                let known = previous?.providers.first { $0.name.hasSameBytes(as: prepared.name) }
                providers.append(try prepared.build(context(prepared.name, configuration, parts), replacing: known))
            } catch {
                if store !== previous?.store, shared == nil { store.shutdown() }
                throw StartError(code: error.code, message: error.description, exit: .configuration)
            }
        }
        let sessions = SessionStore(
            policy: SessionPolicy(configuration.sessions), backend: store.sessions, clock: services.clock,
            readsClaims: accounts != nil, seal: store.seal,
            onRevoked: { await store.invalidate(.ended($0)) }, onChanged: { await store.invalidate(.changed($0)) })
        let claims = accounts.map {
            ClaimPublisher(accounts: $0.store, sessions: sessions, dropDecisions: store.accountChanged)
        }
        let limits = RouteLimitPlans(
            configuration.routes, configuration.server, logins: configuration.sessions.loginLimits.map(\.value),
            store: store.limits, previous: previous?.snapshot.routeLimits)
        let (setup, jobs) = signInSetup(configuration, blueprint, parts, providers, sessions, claims, limits)
        let snapshot = Snapshot(
            routes: blueprint.routes, upstreams: upstreams(blueprint, previous: previous), providers: providers,
            server: configuration.server,
            signIn: signIn(setup, configuration, blueprint, parts, sessions),
            names: CallerNames(configuration.log),
            routeLimits: limits, checks: blueprint.checks,
            tracing: configuration.tracing.map { TracingRules($0, configuration.log) }, accessLog: accessLog)
        return Graph(
            blueprint: blueprint, store: store, accounts: accounts, events: events, jobs: jobs, sessions: sessions,
            claims: claims, operatorSessions: operatorSessions(setup, parts), life: setup.life, providers: providers,
            snapshot: snapshot, issuerKeys: lease.labels)
    }

    private static func upstreams(_ blueprint: Blueprint, previous: Graph?) -> [Upstream] {
        zip(blueprint.configuration.upstreams, blueprint.tls.upstreams).map { upstream, tls in
            let counters = UpstreamCounters.of(upstream, previous: previous?.snapshot.upstreams ?? [])
            return Upstream(upstream, tls: tls, counters: counters)
        }
    }

    /// Makes changes of accounts record their events, for a command that changes them; running gateways deliver them.
    package func recordEvents() { events?.subscribe() }

    private static func events(
        _ blueprint: Blueprint, _ accounts: OpenAccounts?, _ services: Services
    ) throws(StartError) -> EventDelivery? {
        let mail = blueprint.configuration.mail
        guard let accounts, !blueprint.webhooks.isEmpty || mail != nil else { return nil }
        return try EventDelivery(
            blueprint.webhooks, mail: mail, route: OutboundRoute(nil, blueprint.configuration.outbound),
            accounts.store, maximumEvents: blueprint.configuration.outbox.maximumRows, services)
    }

    private struct Parts {
        let services: Services
        let store: SharedStore
        let accounts: AccountStore?
        let keys: IssuerKeysRegistry.Lease

        /// What verifies proofs of clients' keys, of requests and of logins.
        var proofs: DPoPVerifier { DPoPVerifier(store: store.values, keyPrefix: store.label.prefix) }
    }

    /// The setup of the endpoints, and the background work on the accounts that they change.
    private static func signInSetup(
        _ configuration: GatewayConfiguration, _ blueprint: Blueprint, _ parts: Parts, _ providers: [ProviderHandle],
        _ sessions: SessionStore, _ claims: ClaimPublisher?, _ limits: RouteLimitPlans
    ) -> (SignInSetup, IdentityJobs?) {
        let (store, clock) = (parts.store, parts.services.clock)
        let logger = parts.services.logger.with(("component", "signin"))
        var loginLimit: (@Sendable (LocalRequest) async -> Failure?)?
        if let logins = LoginLimits(limits, clock: clock) { loginLimit = { await logins.rejection(of: $0) } }
        var setup = SignInSetup(
            providers: providers, sessions: sessions, accounts: parts.accounts, links: parts.accounts, claims: claims,
            transfers: parts.accounts.flatMap {
                TransferredIdentities($0, $0.transfers, providers: providers, clock: clock, logger: logger)
            },
            store: store.values, storeKeyPrefix: store.label.prefix, nonces: store.nonces, proofs: parts.proofs,
            configuration: configuration.sessions, wellKnown: configuration.wellKnown,
            keySet: blueprint.assertion?.keySet, browser: browser(configuration, blueprint, store, sessions),
            claimRules: blueprint.claimRules, deletionGrace: configuration.accounts?.deletion.grace ?? .zero,
            loginLimit: loginLimit, audit: blueprint.audit == nil ? nil : parts.services.audit, clock: clock,
            logger: logger,
            invalidateDecisions: { await store.invalidateEverywhere($0) })
        guard let accounts = parts.accounts else { return (setup, nil) }
        let policy = DeletionPolicy(configuration.accounts?.deletion ?? DeletionConfiguration(), providers)
        var surroundings = JobRunner.Surroundings(
            store: accounts.life, leases: accounts, accounts: accounts, sessions: AccountSessions(setup),
            publishClaims: { subject throws(ClaimPublisher.PublicationError) in
                try await claims?.publish(subject)
            },
            providers: providers, keys: blueprint.grantKeys, policy: policy)
        surroundings.audit = setup.audit
        surroundings.outbox = OutboxPruner(
            accounts, hooks: blueprint.subscriptions.hooks, clock: clock,
            logger: parts.services.logger.with(("component", "events")))
        let jobs = IdentityJobs(
            surroundings, clock: clock, logger: parts.services.logger.with(("component", "identities")))
        setup.life = IdentityLife(
            store: accounts.life, runner: jobs.runner, keys: blueprint.grantKeys, policy: policy, clock: clock)
        return (setup, jobs)
    }

    private static func browser(
        _ configuration: GatewayConfiguration, _ blueprint: Blueprint, _ store: SharedStore, _ sessions: SessionStore
    ) -> BrowserSetup? {
        configuration.browser.map {
            var browser = BrowserSetup(
                $0, files: blueprint.pageFiles, base: configuration.sessions.path, sessions: sessions,
                key: store.browserKey)
            let pages = PageRequirements($0, configuration.server.paths, blueprint.routes)
            browser.stepUp = { pages.requirement(of: $0) }
            return browser
        }
    }

    private static func operatorSessions(_ setup: SignInSetup, _ parts: Parts) -> OperatorSessions {
        OperatorSessions(
            AccountSessions(setup), life: setup.life, accounts: parts.accounts,
            logger: parts.services.logger.with(("component", "admin")))
    }

    private static func signIn(
        _ setup: SignInSetup, _ configuration: GatewayConfiguration, _ blueprint: Blueprint, _ parts: Parts,
        _ sessions: SessionStore
    ) -> SignInComponents {
        let (store, clock) = (parts.store, parts.services.clock)
        let endpoints = SignInEndpoints(setup)
        return SignInComponents(
            sessions: verifying(sessions, configuration.store, store, clock),
            subjects: parts.accounts.map {
                AccountSubjects(
                    accounts: $0, rules: blueprint.claimRules, transfers: setup.transfers, clock: clock)
            },
            assertion: blueprint.assertion,
            proofs: parts.proofs, handler: endpoints.handle,
            rejection: endpoints.rejection(of:),
            browser: configuration.browser.map { BrowserRules($0, configuration, blueprint.routes, endpoints) })
    }

    /// Verifies session tokens; under `on_error: cached` with a cache that all loops share.
    private static func verifying(
        _ sessions: SessionStore, _ configuration: StoreConfiguration, _ store: SharedStore, _ clock: Clock
    ) -> any SessionVerifying {
        guard configuration.onError == .cached, let copies = store.copies else { return sessions }
        return CachedSessions(sessions, copies: copies, clock: clock)
    }

    private static func context(
        _ name: String, _ configuration: GatewayConfiguration, _ parts: Parts
    ) -> ProviderContext {
        let policy = IssuerKeysPolicy(configuration.jwks)
        let (services, store, keys) = (parts.services, parts.store, parts.keys)
        let logger = services.logger.with(("provider", name))
        let own = configuration.providers.first { $0.name.value.hasSameBytes(as: name) }?.outbound
        let route = OutboundRoute(own, configuration.outbound)
        var provided = ProviderContext.Services(
            clock: services.clock, http: HTTPCaller(fetcher: services.fetcher, purpose: .provider(name), route: route),
            store: store.values, hashing: services.hashing, users: parts.accounts, keys: parts.accounts?.keys(of: name))
        provided.maximumTokenBytes = configuration.server.limits.tokenBytes
        var context = ProviderContext(
            name: name, services: provided, logger: logger, storeKeyPrefix: store.label.prefix,
            makeIssuerKeys: { url, algorithms, onRemoved in
                let label = IssuerKeysRegistry.Label(
                    provider: name, url: url, algorithms: algorithms, policy: policy, store: store.label, route: route)
                return keys.keys(label) {
                    IssuerKeys(
                        url: url, policy: policy, allowing: algorithms,
                        fetcher: KeyFetcher(fetcher: services.fetcher, route: route),
                        store: store.values.partition(.keys, for: .gateway), storeKeyPrefix: store.label.prefix,
                        clock: services.clock, logger: logger,
                        onKeysRemoved: onRemoved,
                        onRotation: { services.audit.record(AuditEvent($0, of: name, from: url)) })
                }
            },
            forget: { store.invalidateEverywhere() }, forgetSubjects: { store.verifyAgain($0) })
        context.nonces = store.nonces
        return context
    }
}

/// The key caches of issuers, which survive reloads that do not change their configuration.
package final class IssuerKeysRegistry: Sendable {
    /// The configuration of a key cache; caches with equal labels are shared.
    package struct Label: Hashable, Sendable {
        let provider: String
        let url: String
        let algorithms: Set<SignatureAlgorithm>
        let policy: IssuerKeysPolicy
        let store: SharedStore.Label
        let route: OutboundRoute
    }

    private let caches = Lock<[Label: IssuerKeys]>([:])

    package init() {}

    /// The cache with that label, created on first use.
    fileprivate func keys(_ label: Label, make: () -> IssuerKeys) -> IssuerKeys {
        caches.withLock { caches in
            if let existing = caches[label] { return existing }
            let created = make()
            caches[label] = created
            return created
        }
    }

    func keys(of provider: String) -> [IssuerKeys] {
        caches.withLock { caches in caches.filter { $0.key.provider == provider }.map(\.value) }
    }

    /// Drops every other cache: an unused cache has been stopped, and its store may be closed.
    func retain(only labels: Set<Label>) {
        caches.withLock { caches in caches = caches.filter { labels.contains($0.key) } }
    }

    func lease() -> Lease { Lease(self) }

    /// Records which caches one configuration uses.
    final class Lease: Sendable {
        private let registry: IssuerKeysRegistry
        private let used = Lock<Set<Label>>([])

        fileprivate init(_ registry: IssuerKeysRegistry) { self.registry = registry }

        var labels: Set<Label> { used.withLock { $0 } }

        func keys(_ label: Label, make: () -> IssuerKeys) -> IssuerKeys {
            used.withLock { _ = $0.insert(label) }
            return registry.keys(label, make: make)
        }
    }
}

extension IssuerKeysPolicy {
    init(_ configuration: JWKSConfiguration) {
        self.init(
            ttl: configuration.ttl, maximumStale: configuration.maximumStale,
            unknownKeyCooldown: configuration.unknownKeyCooldown, negativeTTL: configuration.negativeTTL,
            fetchTimeout: configuration.fetchTimeout)
    }
}

extension SessionPolicy {
    /// The `sessions:` block.
    package init(_ configuration: SessionsConfiguration) {
        self.init(
            accessTTL: configuration.accessTTL, refreshTTL: configuration.refreshTTL,
            idleTimeout: configuration.idleTimeout, refreshReuseGrace: configuration.refreshReuseGrace,
            maximumPerSubject: configuration.maximumPerSubject, cacheTTL: configuration.cacheTTL)
    }
}

extension DeletionPolicy {
    /// The `accounts.deletion:` block, for the configured providers.
    package init(_ configuration: DeletionConfiguration, _ providers: [ProviderHandle]) {
        self.init()
        grace = configuration.grace
        anonymizes = configuration.anonymizes
        maximumRevocationAge = configuration.maximumRevocationAge
        let kinds = Set(providers.filter { $0.revoking != nil }.map(\.kind.rawValue))
        revocationMembers = kinds.sorted().map { "revoked_at_\($0)" }
    }
}
