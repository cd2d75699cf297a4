internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletProvider
internal import MartletProxy
internal import MartletRedis
private import Synchronization

/// The composition root: builds the graph of a configuration, starts it, replaces it on reload, and ends it.
///
/// Reload is `build → start → swap → end the old`: whatever fails before the swap leaves everything as it was.
package final class Gateway: Sendable {
    private struct State {
        var graph: Graph
        var listeners: Listeners
        var loops: LoopGroup?
        var admin: LoopGroup?
        var adminListeners = Listeners()
        var inheritance = Inheritance()
        /// Whether the files of Unix sockets go when the listeners do; another process may need them.
        var ownsFiles = true
        /// Whether a successor serves.
        var hasHeir = false
        var starting: Task<Void, Never>?
        var resolving: Task<Void, Never>?
        var watching: Task<Void, Never>?
        var reminding: Task<Void, Never>?
        /// End what replaced configurations used.
        var retiring: [Task<Void, Never>] = []
        var isDraining = false
        var reloadDesk: ReloadDesk?
        var reloads: ReloadRecord
    }

    /// Descriptors that are nobody's connection: loops, logs, the store, listeners.
    private static let ownDescriptors = 100
    /// How often upstream host names are looked up again.
    private static let resolveInterval = Duration.seconds(30)
    /// How often the store's connection is looked at.
    private static let watchInterval = Duration.milliseconds(100)
    /// The same while the answer makes no difference.
    private static let idleWatchInterval = Duration.seconds(1)
    /// How often certificates that nobody believes are told of again.
    private static let remindInterval = Duration.seconds(24 * 3600)

    let services: Services
    /// When it was built.
    let startedAt: UnixTime
    private let publicHealth = PublicHealth()
    private let shelf: KeyShelf
    private let forgetting: ForgetSwitch
    private let state: Mutex<State>

    /// Builds everything; nothing is started.
    package convenience init(_ blueprint: Blueprint, sink: LogSink) throws(StartError) {
        try self.init(blueprint, services: Services(sink: sink, level: blueprint.configuration.log.level))
    }

    /// Builds everything on services that exist; they end with it.
    init(_ blueprint: Blueprint, services: Services) throws(StartError) {
        self.services = services
        let shelf = KeyShelf()
        let forgetting = ForgetSwitch(logger: services.logger)
        let graph = try Graph.build(blueprint, services, previous: nil, keys: shelf, forgetting: forgetting)
        self.shelf = shelf
        self.forgetting = forgetting
        startedAt = services.clock.unixTime
        state = Mutex(State(graph: graph, listeners: Listeners(), reloads: ReloadRecord(loadedAt: startedAt)))
    }

    var graph: Graph { state.withLock { $0.graph } }
    /// Whether nobody should send requests here any more; with a successor behind the same addresses they may.
    var isDraining: Bool { state.withLock { $0.isDraining && !$0.hasHeir } }
    var reloads: ReloadRecord { state.withLock { $0.reloads } }

    /// Where clients connect to, ports filled in.
    package var addresses: [String] { state.withLock { $0.listeners.addresses.map(\.description) } }
    /// Where operators connect to.
    package var adminAddress: String? { state.withLock { $0.adminListeners.addresses.first?.description } }

    /// Starts providers, loops and listeners.
    ///
    /// - Parameter inheritance: the sockets that the process was started with.
    package func start(_ inheritance: Inheritance = Inheritance()) async throws(StartError) {
        var inheritance = inheritance
        let graph = graph
        let configuration = graph.blueprint.configuration
        warnOfDescriptors(configuration.server.limits)
        try await expectStore()
        // Clients need not wait for an issuer that is slow: a token whose key is not there yet waits by itself.
        try await open(graph.accounts)
        let starting = Task { await Gateway.start(graph.providers) }
        let resolved = await NameResolution.resolve(graph.snapshot, services)
        let count = configuration.server.workers ?? Services.coreCount
        var listeners = Listeners()
        let sockets = try listeners.open(
            configuration.server.listeners, loops: count, role: .gateway, health: healthHandler,
            inheritance: &inheritance, security: graph.blueprint.security.listeners)
        let loops = try LoopGroup(
            "martlet-loop", snapshot: graph.snapshot, sockets: sockets, resolved: resolved, services: services,
            connections: services.connections)
        forgetting.aim(at: loops)
        do {
            try startAdmin(configuration, graph.snapshot, &inheritance)
        } catch {
            if inheritance.predecessor == nil { listeners.removeFiles() }
            throw error
        }
        inheritance.closeRest()
        let rest = inheritance
        state.withLock { state in
            state.listeners = listeners
            state.inheritance = rest
            state.ownsFiles = rest.predecessor == nil
            state.loops = loops
            state.starting = starting
            state.resolving = Task { [weak self] in await self?.keepResolving() }
            state.watching = Task { [weak self] in await self?.keepWatchOfStore() }
            state.reminding = Task { [weak self] in await self?.keepRemindingOfCertificates() }
        }
        for address in addresses { announce(address, "public") }
        if let adminAddress { announce(adminAddress, "admin") }
    }

    /// Under `on_error: deny` no session is served without the store: where it refuses our credentials, only a change of the
    /// configuration or of the server helps, and the start says so.
    ///
    /// One that cannot be reached does not end the start: it is asked again.
    private func expectStore() async throws(StartError) {
        guard graph.blueprint.configuration.store.onError == .deny, let redis = graph.store.redis else { return }
        do throws(StoreError) {
            try await redis.settle()
        } catch {
            guard error.isRefusal else { return }
            throw StartError(code: error.code, message: "the store refuses us: \(error.message)", exit: .unavailable)
        }
    }

    /// Opens the account store.
    ///
    /// A file that cannot be opened ends the start. A database server that is away does not: sessions go on without it,
    /// and it is asked again.
    private func open(_ accounts: OpenAccounts?) async throws(StartError) {
        guard let accounts else { return }
        do throws(AccountError) {
            try await accounts.store.start()
        } catch {
            guard accounts.isRemote else {
                throw StartError(code: error.code, message: error.message, exit: .unavailable)
            }
            services.logger.error("the account store is away", ("code", "\(error.code)"), ("reason", error.message))
        }
    }

    /// Under `on_error: deny` no loop believes its copies while the store is away.
    private func keepWatchOfStore() async {
        var isRefusing = false
        while !Task.isCancelled {
            let graph = graph
            let isAsked = graph.blueprint.configuration.store.onError == .deny && graph.store.redis != nil
            // Where nothing depends on it, only a reload can change that.
            let interval = isAsked ? Gateway.watchInterval : Gateway.idleWatchInterval
            do { try await Task.sleep(for: interval) } catch { return }
            let refuses = isAsked && graph.store.redis.map { $0.status.state != .connected } ?? false
            if refuses != isRefusing {
                isRefusing = refuses
                forgetting.refuseSessions(refuses)
            }
        }
    }

    /// Tells of certificates that nobody believes, at once and once a day.
    private func keepRemindingOfCertificates() async {
        while !Task.isCancelled {
            let now = services.clock.unixTime
            for shown in graph.blueprint.security.certificates {
                guard let problem = shown.problem(at: now) else { continue }
                services.logger.error(
                    "a certificate is not good", ("code", "\(problem.code)"), ("reason", problem.text),
                    (shown.side, shown.place))
            }
            do { try await Task.sleep(for: Gateway.remindInterval) } catch { return }
        }
    }

    /// A client costs a descriptor, and another one while a request of it is at an upstream.
    private func warnOfDescriptors(_ limits: Limits) {
        let available = SystemInformation.raiseDescriptorLimit()
        guard available < limits.connections + Gateway.ownDescriptors else { return }
        services.logger.warning(
            "the limit of open files is below what server.limits.connections needs", ("limit", String(available)),
            ("connections", String(limits.connections)))
    }

    /// Answers balancers on public listeners.
    private var healthHandler: LocalHandler {
        { [weak self] request in
            guard let self else { return PublicHealth.response(isServing: false, request) }
            return publicHealth.answer(request, self)
        }
    }

    private func announce(_ address: String, _ listener: String) {
        services.logger.info("listening", ("address", address), ("listener", listener))
    }

    private func startAdmin(
        _ configuration: GatewayConfiguration, _ snapshot: Snapshot, _ inheritance: inout Inheritance
    ) throws(StartError) {
        guard let admin = configuration.admin else { return }
        var places = Listeners()
        // A process that takes over beside a running one shares its public ports: it must get past the admin port, too.
        let sharesPorts = configuration.server.listeners.contains(where: \.reusePort)
        let handler = AdminEndpoints(self)
        let sockets: [[ListenerSocket]]
        do {
            sockets = try places.open(
                [ListenerConfiguration(address: admin.address, reusePort: sharesPorts)], loops: 1,
                side: .admin, role: .local(ListenerHandler { await handler.answer($0) }),
                inheritance: &inheritance)
        } catch {
            guard admin.isImplied else { throw error }
            return services.logger.warning("there is no admin listener", ("reason", error.description))
        }
        // Counted on its own: operators get in when clients fill the gateway.
        let loops = try LoopGroup(
            "martlet-admin", snapshot: snapshot, sockets: sockets, resolved: [], services: services,
            connections: ConnectionLimit())
        let opened = places
        state.withLock { state in
            state.admin = loops
            state.adminListeners = opened
        }
    }

    /// Providers start together; one that cannot reach its issuer starts all the same.
    private static func start(_ providers: [ProviderHandle]) async {
        await withTaskGroup(of: Void.self) { group in
            for provider in providers { group.addTask { await provider.running?.start() } }
        }
    }

    private static func shutdown(_ providers: [ProviderHandle]) async {
        for provider in providers { await provider.running?.shutdown() }
    }

    // MARK: Reload

    /// Goes over to a new configuration without dropping a request.
    package func reload(_ blueprint: Blueprint) async throws(StartError) {
        // A provider is not to be shut down before it has been started.
        await state.withLock { $0.starting }?.value
        let old = graph
        let forgetting = forgetting
        let next: Graph
        do {
            next = try Graph.build(blueprint, services, previous: old, keys: shelf, forgetting: forgetting)
        } catch {
            shelf.keep(only: old.keyLabels)
            throw error
        }
        if next.accounts?.url != old.accounts?.url {
            do throws(StartError) {
                try await open(next.accounts)
            } catch {
                await end(next, for: old)
                throw error
            }
        }
        await Gateway.start(next.providers)
        // Sessions of a store that is about to connect need not fail; one that is away must not hold the reload up.
        if next.store !== old.store { try? await next.store.redis?.settle() }
        let resolved = await NameResolution.resolve(next.snapshot, services)
        do {
            try swap(to: next, resolved)
        } catch {
            await end(next, for: old)
            throw error
        }
        follow(blueprint.configuration.log)
        await retire(old, for: next)
        warnOfRestart(old.blueprint.configuration, blueprint.configuration)
    }

    /// Has the loops go over; throws before anything has changed.
    private func swap(to next: Graph, _ resolved: [ResolvedName]) throws(StartError) {
        guard let loops = state.withLock({ $0.loops }) else { return }
        var (listeners, inheritance) = state.withLock { ($0.listeners, $0.inheritance) }
        let sockets = try listeners.open(
            next.blueprint.configuration.server.listeners, loops: loops.count, role: .gateway, health: healthHandler,
            inheritance: &inheritance, security: next.blueprint.security.listeners)
        let opened = listeners
        state.withLock { state in
            state.graph = next
            state.listeners = opened
        }
        loops.adopt(next.snapshot, sockets: sockets)
        loops.resolved(resolved)
    }

    /// Goes over to the level and the format of a new configuration.
    private func follow(_ log: LogConfiguration) {
        services.logThreshold.level = log.level
        guard services.sink.use(log.format) else { return }
        let (loops, admin) = state.withLock { ($0.loops, $0.admin) }
        loops?.logFormatChanged()
        admin?.logFormatChanged()
    }

    /// Ends what one graph has and the other, which serves, does not use.
    private func end(_ graph: Graph, for serving: Graph) async {
        await Gateway.shutdown(graph.providers)
        await Gateway.close(graph, for: serving)
        shelf.keep(only: serving.keyLabels)
    }

    /// The same for a graph that has served: requests that began on its stores have their time to finish on them.
    private func retire(_ graph: Graph, for serving: Graph) async {
        await Gateway.shutdown(graph.providers)
        shelf.keep(only: serving.keyLabels)
        guard graph.store !== serving.store || graph.accounts?.url != serving.accounts?.url else { return }
        let task = Task {
            try? await Task.sleep(for: LocalLimits.patience)
            await Gateway.close(graph, for: serving)
        }
        state.withLock { $0.retiring.append(task) }
    }

    private static func close(_ graph: Graph, for serving: Graph) async {
        if graph.store !== serving.store { graph.store.shutdown() }
        if graph.accounts?.url != serving.accounts?.url { await graph.accounts?.store.shutdown() }
    }

    /// Where a reload can be asked for; `nil` where the configuration is nobody's file.
    var reloadDesk: ReloadDesk? {
        get { state.withLock { $0.reloadDesk } }
        set { state.withLock { $0.reloadDesk = newValue } }
    }

    /// Counts what became of a configuration that was to be taken over.
    func noteReload(success: Bool) {
        let now = services.clock.unixTime
        state.withLock { $0.reloads.note(success: success, at: now) }
    }

    private func warnOfRestart(_ old: GatewayConfiguration, _ new: GatewayConfiguration) {
        if old.server.workers != new.server.workers {
            services.logger.warning("a changed setting needs a restart", ("setting", "server.workers"))
        }
        if old.admin?.address.value != new.admin?.address.value {
            services.logger.warning("a changed setting needs a restart", ("setting", "admin"))
        }
    }

    private func keepResolving() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: Gateway.resolveInterval) } catch { return }
            let resolved = await NameResolution.resolve(graph.snapshot, services)
            state.withLock { $0.loops }?.resolved(resolved)
        }
    }

    // MARK: End

    /// Says that it is not ready, accepts no more after `shutdown_delay`, lets what is under way finish, and ends everything.
    package func drain() async {
        let timeouts = graph.blueprint.configuration.server.timeouts
        let patience = timeouts.drain
        let isSucceeded = state.withLock { state in
            state.isDraining = true
            return state.hasHeir
        }
        // Nobody has to go elsewhere where a successor serves at the same addresses.
        if !isSucceeded, timeouts.shutdownDelay > .zero { try? await Task.sleep(for: timeouts.shutdownDelay) }
        let (loops, admin, tasks, hasHeir) = state.withLock { state in
            if state.ownsFiles { state.listeners.removeFiles() }
            let tasks = [state.starting, state.resolving, state.watching, state.reminding]
            return (state.loops, state.admin, tasks, state.hasHeir)
        }
        // Whoever asks the admin listener means the process that serves.
        if hasHeir { endAdmin() }
        for task in tasks { task?.cancel() }
        loops?.drain(until: services.clock.monotonicTime + patience, hasHeir: hasHeir)
        await loops?.join()
        endAdmin()
        await admin?.join()
        await Gateway.shutdown(graph.providers)
        for task in state.withLock({ $0.retiring }) {
            task.cancel()
            await task.value
        }
        await graph.accounts?.store.shutdown()
        graph.store.shutdown()
        services.shutdown()
    }

    private func endAdmin() {
        let (admin, hasHeir) = state.withLock { state in
            if state.ownsFiles { state.adminListeners.removeFiles() }
            return (state.admin, state.hasHeir)
        }
        let patience = hasHeir ? Duration.seconds(2) : .milliseconds(300)
        admin?.drain(until: services.clock.monotonicTime + patience, hasHeir: hasHeir)
    }

    // MARK: Takeover

    /// What a successor gets: sockets by address, and those that it finds under their numbers.
    var handedOver: (groups: [Inheritance.Group], others: [Int32]) {
        state.withLock { state in
            let groups = state.listeners.handedOver(.public) + state.adminListeners.handedOver(.admin)
            return (groups, state.inheritance.activated.sorted() + state.inheritance.others)
        }
    }

    /// The predecessor has left everything to this process.
    func ownEverything() { state.withLock { $0.ownsFiles = true } }

    /// A successor serves: what is shared with it stays when this process ends.
    func leaveEverything() {
        state.withLock { state in
            state.ownsFiles = false
            state.hasHeir = true
        }
    }

    /// The counters of every loop that serves clients.
    func reports() async -> [LoopReport] { await state.withLock { $0.loops }?.reports() ?? [] }
}

/// Where what must be forgotten is told: to the loops, once there are any.
final class ForgetSwitch: Sendable {
    /// How long whoever revokes something waits for the loops.
    private static let patience = Duration.seconds(1)

    private let target = Mutex<LoopGroup?>(nil)
    private let logger: Logger

    init(logger: Logger) { self.logger = logger }

    func aim(at loops: LoopGroup) { target.withLock { $0 = loops } }

    /// Every verdict.
    func forget() { target.withLock { $0 }?.forget() }
    /// The copies of sessions that have ended, and verdicts on subjects who have changed.
    func revoked(_ numbers: [UInt64]) { target.withLock { $0 }?.revoked(numbers) }
    /// The same for what this instance has ended: returns when no loop believes its copies any more, or one is stuck.
    func revokedHere(_ numbers: [UInt64]) async {
        guard await target.withLock({ $0 })?.revoked(numbers, within: Self.patience) == false else { return }
        logger.warning("a loop has not dropped what was revoked in time", ("count", String(numbers.count)))
    }
    /// Whether sessions are refused because the store is down.
    func refuseSessions(_ refuses: Bool) { target.withLock { $0 }?.refuseSessions(refuses) }
}
