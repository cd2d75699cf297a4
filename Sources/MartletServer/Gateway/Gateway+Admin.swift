internal import MartletAccounts
package import MartletAdmin
internal import MartletAudit
internal import MartletAuthenticator
internal import MartletConfig
package import MartletCore
internal import MartletDecisions
package import MartletIdentities
internal import MartletJOSE
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis
package import MartletResponder
internal import MartletRouter
internal import MartletUpstreams

extension Gateway: AdminSource {
    package var adminHosts: [String] { graph.blueprint.configuration.admin?.hosts ?? [] }
    package var adminAccess: AdminAccess {
        let admin = graph.blueprint.configuration.admin
        return AdminAccess(
            token: admin?.token?.value, acceptsCertificates: admin?.tls?.clientAuthorityFile != nil,
            areMetricsOpen: admin?.metrics == .open)
    }
    package var configurationFacts: ConfigurationFacts {
        let blueprint = graph.blueprint
        return ConfigurationFacts(
            blueprint.configuration, digest: blueprint.digest, addresses: addresses, adminAddress: adminAddresses.first)
    }
    package var clock: Clock { services.clock }
    package var operatorClaims: OperatorClaims? {
        let graph = graph
        guard let accounts = graph.accounts, let publisher = graph.claims else { return nil }
        return OperatorClaims(
            accounts.store, publisher: publisher, logger: services.logger.with(("component", "admin"))
        ) { graph.store.outage }
    }
    package var operatorSessions: OperatorSessions { graph.operatorSessions }
    package var operatorAccounts: OperatorAccounts? {
        let graph = graph
        guard let accounts = graph.accounts, let life = graph.life else { return nil }
        return OperatorAccounts(
            accounts.store, life: life, sessions: graph.operatorSessions, providers: graph.providers,
            logger: services.logger.with(("component", "admin"))
        ) { graph.store.outage }
    }

    /// Takes an endpoint of an upstream out of use, or back, and logs it.
    package func drain(_ endpoint: String, of upstream: String, isDrained: Bool) -> EndpointDraining {
        let (graph, loops) = state.withLock { ($0.graph, $0.loops) }
        let result = endpoints.change(
            endpoint, of: upstream, isDrained: isDrained, in: graph.blueprint.configuration.upstreams, loops)
        if result == .done {
            services.logger.info(
                isDrained ? "upstream endpoint drained" : "upstream endpoint restored", ("upstream", upstream),
                ("endpoint", endpoint))
        }
        return result
    }

    /// Has finished requests of clients watched, or not any more.
    package func watchRequests(_ watcher: (any RequestWatching)?) { clientLoops?.post(.watch(watcher)) }

    /// A subject as access lines name it.
    package func loggedSubject(_ subject: String) -> String? { graph.blueprint.loggedSubject(subject) }

    /// Fetches the keys of a provider's issuer now, and logs the result.
    package func refreshKeys(of provider: String) async -> KeyRefresh {
        guard graph.providers.contains(where: { $0.name == provider }) else { return .unknownProvider }
        let caches = issuerKeys.keys(of: provider)
        guard !caches.isEmpty else { return .hasNoKeys }
        for keys in caches {
            guard let error = await keys.refreshNow() else { continue }
            services.logger.warning(
                "issuer keys not refreshed for an operator", ("provider", provider), ("code", "\(error.code)"),
                ("reason", error.message))
            return .failed("\(error.code): \(error.message)")
        }
        services.logger.info("issuer keys refreshed for an operator", ("provider", provider))
        return .done
    }

    /// The state of the gateway that the admin pages show.
    /// - Parameters:
    ///   - loops: the counters of the event loops that reported in time.
    ///   - responding: the number of those loops.
    package func adminReport(loops: [LoopReport], responding: Int) -> AdminReport {
        let (graph, now) = (graph, clock.unixTime)
        let configuration = graph.blueprint.configuration
        let store = graph.store.status.map { AdminReport.Store.redis($0) } ?? .memory
        let providers = graph.providers.map {
            AdminReport.Provider(
                name: $0.name, kind: $0.kind.rawValue, health: $0.reporting?.health,
                bulkhead: $0.bulkhead?.counts, verifications: $0.verifications.counts, logins: $0.logins.counts)
        }
        let (subscription, accounts) = (graph.store.subscriptionStatus, graph.accounts?.store.health)
        let webhooks = graph.events?.statuses ?? []
        let readiness = Readiness(
            instanceID: services.sink.instanceID, store: store,
            sessions: configuration.hasSessionsBlock
                ? SessionAvailability(
                    outage: store.outage(at: clock.monotonicTime), onError: configuration.store.onError,
                    cacheTTL: configuration.sessions.cacheTTL)
                : nil,
            subscription: subscription, accounts: accounts, onError: configuration.store.onError,
            providers: providers, webhooks: webhooks, isDraining: isDraining)
        var report = AdminReport(
            readiness, reloads, version: Gateway.version, startedAt: startedAt, now: now,
            monotonicNow: clock.monotonicTime)
        (report.loops, report.respondingLoops) = (loops, responding)
        report.ownRoutes = Set(graph.blueprint.routes.routes.filter { $0.mount >= 0 }.map(\.name))
        (report.providers, report.store, report.subscription) = (providers, store, subscription)
        (report.accounts, report.hashesWaiting) = (accounts, services.hashing.waiting)
        report.backlog = AdminReport.Backlog(
            revocations: graph.jobs?.runner.pendingRevocations, webhooks: webhooks)
        report.certificates = graph.blueprint.tls.certificates.map { AdminReport.Certificate($0, at: now) }
        report.limits = AdminReport.Limits(
            graph.snapshot.routeLimits.reports, storeFailures: graph.snapshot.routeLimits.storeFailures)
        for part in parts { part.report(into: &report, of: graph, in: self) }
        return report
    }
}

extension AdminReport.Certificate {
    init(_ certificate: TLSMaterial.PresentedCertificate, at now: UnixTime) {
        self.init(
            side: certificate.side, name: certificate.name, file: certificate.file,
            secondsLeft: certificate.secondsLeft(at: now), isValid: certificate.validityError(at: now) == nil)
    }
}

extension Blueprint {
    /// A subject as access lines name it; `nil` if they do not.
    package func loggedSubject(_ subject: String) -> String? { CallerNames(configuration.log).name(of: subject) }
}
