internal import MartletAccounts
package import MartletAdmin
internal import MartletAudit
internal import MartletConfig
internal import MartletCore
internal import MartletEvents
internal import MartletIO
internal import MartletIdentities
internal import MartletJOSE
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis
package import MartletResponder
internal import MartletUpstreams

/// The composition root: builds the object graph of a configuration, starts it, replaces it on reload, and shuts it
/// down.
///
/// Reload is `build → start → swap → shut down the old`: a failure before the swap changes nothing.
package final class Gateway: Sendable {
    /// The version, as `martlet version` prints it.
    package static let version = "0.1.0"

    struct State {
        var graph: Graph
        var listeners: Listeners
        var loops: LoopGroup?
        var admin: LoopGroup?
        var adminListeners = Listeners()
        var adminEndpoints: AdminEndpoints?
        var watchdog: Watchdog?
        var inherited = InheritedSockets()
        /// Whether the files of Unix sockets are removed with the listeners; false while another process uses them.
        var ownsFiles = true
        /// Whether a successor is serving.
        var hasSuccessor = false
        var starting: Task<Void, Never>?
        var resolving: Task<Void, Never>?
        var monitoring: Task<Void, Never>?
        var reminding: Task<Void, Never>?
        var recording: Task<Void, Never>?
        var auditing: Task<Void, Never>?
        /// What is left of replaced configurations.
        var retirement = Retirement()
        var isDraining = false
        var reloadQueue: ReloadQueue?
        var reloads: ReloadRecord
    }

    /// How often the state of the store's connection is polled under `on_error: deny`.
    private static let monitorInterval = Duration.milliseconds(100)
    /// The polling interval while the store's state has no effect.
    private static let idleMonitorInterval = Duration.seconds(1)
    /// How often expired certificates are logged again.
    private static let remindInterval = Duration.seconds(24 * 3600)
    /// How long webhook requests in progress may take when the gateway stops or their configuration is replaced.
    static let deliveryTimeout = Duration.seconds(5)
    /// How long loops may take to end after their requests have.
    private static let joinTimeout = Duration.seconds(5)
    /// How long the last lines of the audit log may take.
    private static let auditTimeout = Duration.seconds(3)

    package let services: Services
    /// When it was built.
    let startedAt: UnixTime
    private let publicHealth = PublicHealth()
    let stalls = Stalls()
    private let issuerKeys: IssuerKeysRegistry
    private let invalidator: CacheInvalidator
    private let names: NameResolution
    let healthChecks: HealthChecks
    let mirrors: Mirrors
    let traces: Traces
    private let drainedEndpoints = DrainedEndpoints()
    let explanations = ExplanationLimit()
    /// What the audit log has said about rejections.
    let rejections = Lock(RejectionWindow())
    let state: Lock<State>

    /// Builds everything; nothing is started.
    package convenience init(_ blueprint: Blueprint, sink: LogSink) throws(StartError) {
        try self.init(blueprint, services: Services(sink: sink, level: blueprint.configuration.log.level))
    }

    /// Builds everything on existing services, which it shuts down when it drains.
    init(_ blueprint: Blueprint, services: Services) throws(StartError) {
        self.services = services
        services.sink.setTime(EventTime(blueprint.configuration.log.access.fields))
        let issuerKeys = IssuerKeysRegistry()
        let invalidator = CacheInvalidator(logger: services.logger)
        let graph = try Graph.build(
            blueprint, services, previous: nil, keys: issuerKeys, invalidator: invalidator,
            accessLog: services.accessFiles.settings(blueprint.configuration.log))
        self.issuerKeys = issuerKeys
        self.invalidator = invalidator
        names = NameResolution(
            NameResolver(on: services.loop), clock: services.clock, logger: services.logger)
        healthChecks = HealthChecks(clock: services.clock, logger: services.logger)
        mirrors = Mirrors(logger: services.logger)
        traces = Traces(services)
        startedAt = services.clock.unixTime
        state = Lock(State(graph: graph, listeners: Listeners(), reloads: ReloadRecord(loadedAt: startedAt)))
    }

    package var graph: Graph { state.withLock { $0.graph } }
    /// Whether load balancers should stop sending requests; not with a successor at the same addresses.
    package var isDraining: Bool { state.withLock { $0.isDraining && !$0.hasSuccessor } }
    var reloads: ReloadRecord { state.withLock { $0.reloads } }

    /// The addresses of the public listeners, with the ports that the system chose.
    package var addresses: [String] { state.withLock { $0.listeners.addresses.map(\.description) } }
    /// The address of the admin listener, and that of its Unix socket.
    package var adminAddresses: [String] { state.withLock { $0.adminListeners.addresses.map(\.description) } }

    /// Starts providers, loops and listeners.
    ///
    /// - Parameter inherited: the sockets that the process was started with.
    package func start(_ inherited: InheritedSockets = InheritedSockets()) async throws(StartError) {
        var inherited = inherited
        let graph = graph
        let configuration = graph.blueprint.configuration
        divideDescriptors(configuration.server.limits)
        try await requireStore()
        // The start does not wait for a slow issuer: only requests whose key is not fetched yet wait.
        try await open(graph.accounts, graph.blueprint.grantKeys)
        let audit = try prepareAudit(graph.blueprint, waits: inherited.predecessor != nil)
        graph.events?.subscribe()
        let starting = Task { await Gateway.start(graph.providers) }
        await names.prepare(configuration.upstreams)
        var resolved: [ResolvedName] = []
        names.follow(configuration.upstreams) { resolved = $0 }
        mirrors.follow(configuration, resolved)
        traces.follow(configuration)
        OutboundEnvironment.current.log(configuration, services.logger)
        let count = configuration.server.workers ?? Services.coreCount
        var listeners = Listeners()
        let sockets = try listeners.open(
            configuration.server.listeners, loops: count, role: .gateway, health: healthHandler,
            inherited: &inherited, security: graph.blueprint.tls.listeners)
        let loops = try LoopGroup(
            "martlet-loop", snapshot: graph.snapshot, sockets: sockets, resolved: resolved, services: services,
            mirrors: mirrors.receiver, spans: traces.receiver, connections: services.connections)
        attach(to: loops)
        do {
            try startAdmin(configuration, graph.snapshot, &inherited)
        } catch {
            if inherited.predecessor == nil { listeners.removeFiles() }
            throw error
        }
        inherited.closeUnused()
        let remaining = inherited
        let resolving = Task { [names] in await names.run() }
        let monitoring = Task { [weak self] () -> Void in await self?.monitorStore() }
        let reminding = Task { [weak self] () -> Void in await self?.reportInvalidCertificates() }
        state.withLock { state in
            state.listeners = listeners
            state.inherited = remaining
            state.ownsFiles = remaining.predecessor == nil
            state.loops = loops
            state.starting = starting
            state.resolving = resolving
            state.monitoring = monitoring
            state.reminding = reminding
        }
        try watchLoops(configuration.server.watchdog)
        adopt(audit)
        healthChecks.follow(configuration.upstreams, resolved)
        graph.events?.start()
        graph.jobs?.start()
        for address in addresses { logListening(address, "public") }
        for address in adminAddresses { logListening(address, "admin") }
    }

    /// Has the loops be notified of what concerns them.
    private func attach(to loops: LoopGroup) {
        invalidator.attach(to: loops)
        healthChecks.attach { [mirrors] endpoints in
            loops.post(.health(endpoints))
            mirrors.healthChanged(endpoints)
        }
        names.attach(
            NameResolution.Observer(
                changed: { loops.post(.resolved($0)) },
                all: { [healthChecks, mirrors] names in
                    healthChecks.follow(names)
                    mirrors.follow(names)
                }))
    }

    /// Waits for the first connection to the store, so that the first requests find it.
    ///
    /// Under `on_error: deny` no session works without the store, so the start fails if the store rejects our
    /// credentials: only a change of the configuration or of the server helps.
    ///
    /// An unreachable store does not fail the start: the connection is retried.
    private func requireStore() async throws(StartError) {
        guard let redis = graph.store.redis else { return }
        do throws(StoreError) {
            try await redis.waitUntilConnected()
        } catch {
            guard graph.blueprint.configuration.store.onError == .deny, error.isAccessDenied else { return }
            throw StartError(
                code: error.code, message: "store rejected the connection: \(error.message)", exit: .unavailable)
        }
    }

    /// Opens the account store, and checks that it has no grants of a key that is missing.
    ///
    /// A file that cannot be opened fails the start. An unavailable database server does not: sessions work without it,
    /// and the connection is retried.
    private func open(
        _ accounts: OpenAccounts?, _ keys: GrantKeys?, isOpen: Bool = false
    ) async throws(StartError) {
        guard let accounts else { return }
        do throws(AccountError) {
            if !isOpen { try await accounts.store.start() }
            let life = accounts.store.life
            if let keys { try await keys.verify(in: life) } else { try await GrantKeys.verifyNone(in: life) }
        } catch {
            if error.code == .accountsKeyMissing {
                throw StartError(code: error.code, message: error.message, exit: .configuration)
            }
            guard accounts.isRemote else {
                throw StartError(code: error.code, message: error.message, exit: .unavailable)
            }
            // The store has logged its own outages.
            if error.kind != .unavailable {
                services.logger.error(
                    "account store unavailable", ("code", "\(error.code)"), ("reason", error.message))
            }
        }
    }

    /// Under `on_error: deny` the loops reject sessions, cached ones too, while the store is unavailable.
    private func monitorStore() async {
        var wasRejecting = false
        while !Task.isCancelled {
            let graph = graph
            let isRequired = graph.blueprint.configuration.store.onError == .deny && graph.store.redis != nil
            // Only a reload can make a store required.
            watchMemory(graph.blueprint.configuration.server.overload)
            let interval =
                isRequired || graph.blueprint.configuration.server.overload != nil
                ? Gateway.monitorInterval : Gateway.idleMonitorInterval
            do { try await Task.sleep(for: interval) } catch { return }
            let rejects = isRequired && graph.store.redis.map { $0.status.state != .connected } ?? false
            if rejects != wasRejecting {
                wasRejecting = rejects
                invalidator.post(.rejectSessions(rejects))
            }
        }
    }

    /// Logs certificates that are expired or not valid yet, immediately and once a day.
    private func reportInvalidCertificates() async {
        while !Task.isCancelled {
            let now = services.clock.unixTime
            for certificate in graph.blueprint.tls.certificates {
                guard let error = certificate.validityError(at: now) else { continue }
                services.logger.error(
                    "certificate not valid", ("code", "\(error.code)"), ("reason", error.text),
                    (certificate.side, certificate.name))
            }
            do { try await Task.sleep(for: Gateway.remindInterval) } catch { return }
        }
    }

    /// A client connection takes a descriptor, and a second one while its request is at an upstream: where the system
    /// allows too few, fewer clients are admitted, and not those that come last refused by the system.
    private func divideDescriptors(_ limits: Limits) {
        let plan = services.descriptors.plan
        services.descriptors.adopt(connections: limits.connections)
        guard plan.clients < limits.connections else { return }
        services.logger.warning(
            "open file limit too low for server.limits.connections", ("limit", String(plan.limit)),
            ("connections", String(limits.connections)), ("admitted", String(plan.clients)))
    }

    /// Serves health checks of load balancers on public listeners.
    private var healthHandler: ListenerHandler {
        ListenerHandler(areTasksStalled: stalls.areTasksStalled) { [weak self] request in
            guard let self else { return PublicHealth.response(isServing: false, request) }
            return publicHealth.respond(to: request, self)
        }
    }

    private func logListening(_ address: String, _ listener: String) {
        services.logger.info("listening", ("address", address), ("listener", listener))
    }

    /// Starts all providers concurrently; a provider that cannot reach its issuer starts nevertheless.
    private static func start(_ providers: [ProviderHandle]) async {
        await withTaskGroup(of: Void.self) { group in
            for provider in providers { group.addTask { await provider.running?.start() } }
        }
    }

    static func shutdown(_ providers: [ProviderHandle]) async {
        for provider in providers { await provider.running?.shutdown() }
    }

    // MARK: Reload

    /// Switches to a new configuration without dropping a request.
    package func reload(_ blueprint: Blueprint, for trigger: ReloadTrigger) async throws(StartError) {
        // A provider must not be shut down before it has been started.
        await state.withLock { $0.starting }?.value
        let old = graph
        let invalidator = invalidator
        let next: Graph
        do {
            let accessLog = try services.accessFiles.settings(blueprint.configuration.log)
            next = try Graph.build(
                blueprint, services, previous: old, keys: issuerKeys, invalidator: invalidator, accessLog: accessLog)
        } catch {
            issuerKeys.retain(only: old.issuerKeys)
            services.accessFiles.retain(only: old.blueprint.configuration.log)
            throw error
        }
        let isSameStore = next.accounts?.isSame(as: old.accounts) ?? (old.accounts == nil)
        if !isSameStore || next.blueprint.grantKeys?.ids != old.blueprint.grantKeys?.ids {
            do throws(StartError) {
                try await open(next.accounts, next.blueprint.grantKeys, isOpen: isSameStore)
            } catch {
                await shutdown(next, keeping: old)
                throw error
            }
        }
        await Gateway.start(next.providers)
        // Waits for a store that is connecting, so that sessions do not fail; an unavailable one does not delay the
        // reload.
        if next.store !== old.store { try? await next.store.redis?.waitUntilConnected() }
        // Before the first request; a store that still serves the old configuration changes after the swap.
        if !isSameStore { next.events?.subscribe() }
        await names.prepare(blueprint.configuration.upstreams)
        let audit: AuditLog.Prepared
        do {
            audit = try prepareAudit(blueprint)
            try swap(to: next)
        } catch {
            names.follow(old.blueprint.configuration.upstreams)
            await shutdown(next, keeping: old)
            throw error
        }
        auditEnd(of: old.blueprint, in: blueprint, trigger)
        adopt(audit)
        auditKeys(from: old.blueprint, to: blueprint, trigger)
        let (loops, admin) = state.withLock { ($0.loops, $0.admin) }
        apply(blueprint.configuration.log, next.snapshot.accessLog, loops: loops, admin: admin)
        if let events = next.events {
            events.subscribe()
            events.start()
        } else {
            next.accounts?.store.subscribe(EventSubscriptions())
        }
        next.jobs?.start()
        await retire(old, keeping: next)
        warnAboutRestart(old.blueprint.configuration, blueprint.configuration)
    }

    /// Writes the audit log of a configuration from now on, and looks for rejections if there is one.
    private func adopt(_ audit: AuditLog.Prepared) {
        services.audit.adopt(audit)
        guard state.withLock({ $0.graph.blueprint.audit != nil && $0.auditing == nil }) else { return }
        let auditing = Task { [weak self] () -> Void in await self?.auditRejections() }
        state.withLock { $0.auditing = auditing }
    }

    /// Switches the loops to the new graph; if it throws, nothing has changed.
    private func swap(to next: Graph) throws(StartError) {
        guard let loops = state.withLock({ $0.loops }) else { return }
        var (listeners, inherited) = state.withLock { ($0.listeners, $0.inherited) }
        var (admin, adminListeners) = state.withLock { ($0.admin, $0.adminListeners) }
        var adminSockets: [[ListenerSocket]] = []
        // Another address needs a restart; everything else of the listener changes.
        if adminListeners.serve(next.blueprint.configuration.admin?.address.value) {
            adminSockets = try openAdmin(next.blueprint, &adminListeners, &inherited)
        } else {
            admin = nil
        }
        let sockets = try listeners.open(
            next.blueprint.configuration.server.listeners, loops: loops.count, role: .gateway, health: healthHandler,
            inherited: &inherited, security: next.blueprint.tls.listeners)
        let opened = listeners
        state.withLock { state in
            state.graph = next
            state.listeners = opened
        }
        traces.follow(next.blueprint.configuration)
        divideDescriptors(next.blueprint.configuration.server.limits)
        state.withLock { $0.watchdog }?.follow(next.blueprint.configuration.server.watchdog)
        loops.adopt(next.snapshot, sockets: sockets)
        admin?.adopt(next.snapshot, sockets: adminSockets)
        let upstreams = next.blueprint.configuration.upstreams
        names.follow(upstreams) { resolved in
            loops.post(.resolved(resolved))
            healthChecks.follow(upstreams, resolved)
            mirrors.follow(next.blueprint.configuration, resolved)
        }
        drainedEndpoints.follow(upstreams) { setDrained($0, loops) }
    }

    /// Takes an endpoint of the running configuration out of use, or back.
    func changeDraining(_ endpoint: String, of upstream: String, isDrained: Bool) -> EndpointDraining {
        let (graph, loops) = state.withLock { ($0.graph, $0.loops) }
        return drainedEndpoints.change(
            endpoint, of: upstream, isDrained: isDrained, in: graph.blueprint.configuration.upstreams
        ) { setDrained($0, loops) }
    }

    private func setDrained(_ endpoints: Set<EndpointIdentity>, _ loops: LoopGroup?) {
        loops?.post(.drained(endpoints))
        mirrors.setDrained(endpoints)
    }

    /// Shuts a graph down, but for the resources that the serving graph shares with it.
    private func shutdown(_ graph: Graph, keeping serving: Graph) async {
        await Gateway.shutdown(graph.providers)
        await Gateway.close(graph, keeping: serving)
        keepResources(of: serving)
        services.accessFiles.retain(only: serving.blueprint.configuration.log)
    }

    /// Drops the keys of issuers that only another graph has used.
    func keepResources(of serving: Graph) { issuerKeys.retain(only: serving.issuerKeys) }

    private static func close(_ graph: Graph, keeping serving: Graph) async {
        if graph.store !== serving.store { graph.store.shutdown() }
        if graph.accounts?.isSame(as: serving.accounts) == false { await graph.accounts?.store.shutdown() }
    }

    /// Accepts reload requests; `nil` if the configuration does not come from a file.
    package var reloadQueue: ReloadQueue? {
        get { state.withLock { $0.reloadQueue } }
        set { state.withLock { $0.reloadQueue = newValue } }
    }

    /// Counts a reload and its result.
    package func recordReload(_ reload: ReloadRecording) {
        let now = services.clock.unixTime
        state.withLock { $0.reloads.record(success: reload.isSuccess, at: now) }
        auditReload(reload)
    }

    private func warnAboutRestart(_ old: GatewayConfiguration, _ new: GatewayConfiguration) {
        if old.instanceID != new.instanceID {
            services.logger.warning("changed setting requires a restart", ("setting", "instance_id"))
        }
        if old.server.workers != new.server.workers {
            services.logger.warning("changed setting requires a restart", ("setting", "server.workers"))
        }
        if old.admin?.address.value != new.admin?.address.value {
            services.logger.warning("changed setting requires a restart", ("setting", "admin"))
        }
    }

    // MARK: Shutdown

    /// Reports not ready, stops accepting after `shutdown_delay`, waits for requests in progress, and shuts everything
    /// down.
    package func drain() async {
        let timeouts = graph.blueprint.configuration.server.timeouts
        let timeout = timeouts.drain
        let isReplaced = state.withLock { state in
            state.isDraining = true
            return state.hasSuccessor
        }
        // Load balancers need no time to react if a successor serves at the same addresses.
        if !isReplaced, timeouts.shutdownDelay > .zero { try? await Task.sleep(for: timeouts.shutdownDelay) }
        let (loops, admin, tasks, hasSuccessor) = state.withLock { state in
            if state.ownsFiles { state.listeners.removeFiles() }
            let tasks = [state.starting, state.resolving, state.monitoring, state.reminding, state.recording]
            return (state.loops, state.admin, tasks, state.hasSuccessor)
        }
        // Loops that end do not turn, and their sockets are closed.
        state.withLock { $0.watchdog }?.stop()
        // Admin requests are meant for the process that serves.
        if hasSuccessor { drainAdmin() }
        for task in tasks { task?.cancel() }
        services.memory.end()
        // Its last look at the counters is before the loops end.
        let auditing = state.withLock { $0.auditing }
        auditing?.cancel()
        await auditing?.value
        await auditNewRejections()
        loops?.drain(until: services.clock.monotonicTime + timeout, hasSuccessor: hasSuccessor)
        if await loops?.join(within: timeout + Gateway.joinTimeout) == false {
            services.logger.error("event loop did not end", ("code", "server.loop_stalled"))
        }
        await traces.stop()
        healthChecks.stop()
        mirrors.stop()
        names.stop()
        drainAdmin()
        await admin?.join(within: Gateway.joinTimeout)
        await Gateway.shutdown(graph.providers)
        await graph.jobs?.stop(within: Gateway.deliveryTimeout)
        await graph.events?.stop(within: Gateway.deliveryTimeout)
        for task in state.withLock({ $0.retirement.tasks }).values {
            task.cancel()
            await task.value
        }
        await services.audit.end(within: Gateway.auditTimeout)
        await graph.accounts?.store.shutdown()
        graph.store.shutdown()
        services.shutdown()
    }

    // MARK: Takeover

    /// The descriptors that a successor inherits: sockets by address, and descriptors that keep their numbers.
    var socketsForSuccessor: (groups: [InheritedSockets.Group], others: [Int32]) {
        state.withLock { state in
            let groups =
                state.listeners.socketsForSuccessor(.public) + state.adminListeners.socketsForSuccessor(.admin)
            return (groups, state.inherited.activated.sorted() + state.inherited.others)
        }
    }

    /// Called when the predecessor has released its sockets and their files to this process.
    package func takeOwnership() { state.withLock { $0.ownsFiles = true } }

    /// Called when a successor serves: the files that it shares stay when this process exits.
    func releaseOwnership() {
        state.withLock { state in
            state.ownsFiles = false
            state.hasSuccessor = true
        }
    }

    /// The event loops that serve clients.
    var clientLoops: LoopGroup? { state.withLock { $0.loops } }

    /// The caches of issuers' keys that a provider of the running configuration uses.
    func keyCaches(of provider: String) -> [IssuerKeys] { issuerKeys.keys(of: provider) }

    /// The counters of every loop that serves clients.
    package func loopReports(withEndpoints: Bool) async -> [LoopReport] {
        await state.withLock { $0.loops }?.reports(withEndpoints: withEndpoints) ?? []
    }
}
