package import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletIO
internal import MartletProxy
package import MartletResponder

/// The composition root: builds the object graph of a configuration, starts it, replaces it on reload, and shuts it
/// down.
///
/// A reload builds the next graph, has every part prepare for it, switches the loops, has every part follow, and shuts
/// the graph before down: a failure before the switch changes nothing.
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
        var hasSuccessor = false
        var isDraining = false
        var reloadQueue: ReloadQueue?
        var reloads: ReloadRecord
    }

    /// How long loops may take to end after their requests have.
    static let joinTimeout = Duration.seconds(5)

    package let services: Services
    let startedAt: UnixTime
    private let publicHealth = PublicHealth()
    let stalls = Stalls()
    let issuerKeys = IssuerKeysRegistry()
    private let invalidator: CacheInvalidator
    let explanations = ExplanationLimit()
    let endpoints: EndpointStates
    private let traces: Traces
    private let providers = ProvidersPart()
    private let retirement = Retirement()
    /// What there is besides the loops, in the order in which it gets ready for a configuration and follows it; what
    /// ends or is undone begins with the last.
    let parts: [any GatewayPart]
    let state: Lock<State>

    /// Builds everything; nothing is started.
    package convenience init(_ blueprint: Blueprint, sink: LogSink) throws(StartError) {
        try self.init(blueprint, services: Services(sink: sink, level: blueprint.configuration.log.level))
    }

    /// Builds everything on existing services, which it shuts down when it drains.
    init(_ blueprint: Blueprint, services: Services) throws(StartError) {
        self.services = services
        services.sink.setTime(EventTime(blueprint.configuration.log.access.fields))
        invalidator = CacheInvalidator(logger: services.logger)
        let graph = try Graph.build(
            blueprint, services, previous: nil, keys: issuerKeys, invalidator: invalidator,
            accessLog: services.accessFiles.plan(blueprint.configuration.log))
        endpoints = EndpointStates(services)
        traces = Traces(services)
        parts = [
            DescriptorsPart(),
            // What the others use.
            StorePart(),
            AccountsPart(),
            // Before whatever records an event. Its last look at the counters is the last before the loops drain.
            AuditPart(),
            LogsPart(),
            // Its stores are closed only when no work of a configuration is left.
            retirement,
            // Records what happens from the first change of an account on. It delivers what jobs have caused.
            EventsPart(),
            JobsPart(),
            // They start while names are looked up.
            providers,
            // Operators see the drain to its end.
            AdminListenerPart(),
            endpoints,
            // Last, so that the collector gets the spans of the last requests.
            traces,
            // What only watches ends first: a drain looks like a stall.
            StoreMonitor(invalidator),
            CertificateReminder(),
            WatchdogPart(),
        ]
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
        let change = GatewayChange(to: graph, hasPredecessor: inherited.predecessor != nil)
        for part in parts { try await part.prepare(change, in: self) }
        for part in parts { part.lead(change, in: self) }
        OutboundEnvironment.current.log(change.configuration, services.logger)
        try startLoops(change, inherited)
        for part in parts { part.follow(change, in: self) }
        for address in addresses { logListening(address, "public") }
        for address in adminAddresses { logListening(address, "admin") }
    }

    private func startLoops(_ change: GatewayChange, _ inherited: InheritedSockets) throws(StartError) {
        var inherited = inherited
        let (configuration, snapshot) = (change.configuration, change.next.snapshot)
        var listeners = Listeners()
        let sockets = try listeners.open(
            configuration.server.listeners, loops: configuration.server.workers ?? Services.coreCount, role: .gateway,
            health: healthHandler, inherited: &inherited, security: change.next.blueprint.tls.listeners)
        var resolved: [ResolvedName] = []
        endpoints.withNames { resolved = $0 }
        let loops = try LoopGroup(
            "martlet-loop", snapshot: snapshot, sockets: sockets, resolved: resolved, services: services,
            mirrors: endpoints.mirrors.receiver, spans: traces.receiver, connections: services.connections)
        invalidator.attach(to: loops)
        endpoints.attach(to: loops)
        do {
            try startAdmin(configuration, snapshot, &inherited)
        } catch {
            if inherited.predecessor == nil { listeners.removeFiles() }
            throw error
        }
        inherited.closeUnused()
        let (opened, remaining) = (listeners, inherited)
        state.withLock { state in
            state.listeners = opened
            state.inherited = remaining
            state.ownsFiles = remaining.predecessor == nil
            state.loops = loops
        }
        try watchLoops(configuration.server.watchdog)
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

    // MARK: Reload

    /// Switches to a new configuration without dropping a request.
    package func reload(_ blueprint: Blueprint, for trigger: ReloadTrigger) async throws(StartError) {
        await providers.waitUntilStarted()
        let old = graph
        var built: Graph?
        let change: GatewayChange
        do {
            let accessLog = try services.accessFiles.plan(blueprint.configuration.log)
            let next = try Graph.build(
                blueprint, services, previous: old, keys: issuerKeys, invalidator: invalidator, accessLog: accessLog)
            built = next
            change = GatewayChange(from: old, to: next, for: trigger)
            for part in parts { try await part.prepare(change, in: self) }
            try swap(change)
        } catch {
            for part in parts.reversed() { await part.abandon(built, keeping: old, in: self) }
            throw error
        }
        for part in parts { part.follow(change, in: self) }
        await providers.release(old, keeping: change.next, in: self)
        retirement.begin(old, keeping: change.next, in: self)
        warnAboutRestart(old.blueprint.configuration, blueprint.configuration)
    }

    /// Switches the loops to the new graph; if it throws, nothing has changed.
    private func swap(_ change: GatewayChange) throws(StartError) {
        guard let loops = state.withLock({ $0.loops }) else { return }
        let next = change.next
        var (listeners, inherited) = state.withLock { ($0.listeners, $0.inherited) }
        var (admin, adminListeners) = state.withLock { ($0.admin, $0.adminListeners) }
        var adminSockets: [[ListenerSocket]] = []
        // Another address needs a restart; everything else of the listener changes.
        if adminListeners.serve(change.configuration.admin?.address.value) {
            adminSockets = try openAdmin(next.blueprint, &adminListeners, &inherited)
        } else {
            admin = nil
        }
        let sockets = try listeners.open(
            change.configuration.server.listeners, loops: loops.count, role: .gateway, health: healthHandler,
            inherited: &inherited, security: next.blueprint.tls.listeners)
        let opened = listeners
        state.withLock { state in
            state.graph = next
            state.listeners = opened
        }
        for part in parts { part.lead(change, in: self) }
        endpoints.withNames { loops.adopt(next.snapshot, sockets: sockets, $0) }
        admin?.adopt(next.snapshot, sockets: adminSockets)
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
        let settings = [
            ("instance_id", old.instanceID != new.instanceID),
            ("server.workers", old.server.workers != new.server.workers),
            ("admin", old.admin?.address.value != new.admin?.address.value),
        ]
        for (name, isChanged) in settings where isChanged {
            services.logger.warning("changed setting requires a restart", ("setting", name))
        }
    }

    /// Waits until the memory of replaced configurations is free, before another one is read.
    package func releaseReplaced() async { await retirement.waitUntilReleased(services.clock) }

    // MARK: Shutdown

    /// Reports not ready, stops accepting after `shutdown_delay`, waits for requests in progress, and shuts everything
    /// down.
    package func drain() async {
        let timeouts = graph.blueprint.configuration.server.timeouts
        let isReplaced = state.withLock { state in
            state.isDraining = true
            return state.hasSuccessor
        }
        // Load balancers need no time to react if a successor serves at the same addresses.
        if !isReplaced, timeouts.shutdownDelay > .zero { try? await Task.sleep(for: timeouts.shutdownDelay) }
        let (loops, hasSuccessor) = state.withLock { state in
            if state.ownsFiles { state.listeners.removeFiles() }
            return (state.loops, state.hasSuccessor)
        }
        for part in parts.reversed() { await part.finish(in: self) }
        loops?.drain(until: services.clock.monotonicTime + timeouts.drain, hasSuccessor: hasSuccessor)
        if await loops?.join(within: timeouts.drain + Gateway.joinTimeout) == false {
            services.logger.error("event loop did not end", ("code", "server.loop_stalled"))
        }
        for part in parts.reversed() { await part.stop(in: self) }
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

    var clientLoops: LoopGroup? { state.withLock { $0.loops } }

    /// The counters of every loop that serves clients.
    package func loopReports(withEndpoints: Bool) async -> [LoopReport] {
        await state.withLock { $0.loops }?.reports(withEndpoints: withEndpoints) ?? []
    }
}
