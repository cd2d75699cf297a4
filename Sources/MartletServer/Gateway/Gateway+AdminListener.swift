internal import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletProxy
internal import MartletResponder
private import Synchronization

/// The admin listener: its start, its changes at a reload, and its end.
extension Gateway {
    func startAdmin(
        _ configuration: GatewayConfiguration, _ snapshot: Snapshot, _ inherited: inout InheritedSockets
    ) throws(StartError) {
        guard let admin = configuration.admin else { return }
        var listeners = Listeners()
        let sockets: [[ListenerSocket]]
        do { sockets = try openAdmin(graph.blueprint, &listeners, &inherited) } catch {
            guard admin.isImplied else { throw error }
            return services.logger.warning("admin listener not started", ("reason", error.description))
        }
        // A connection limit of its own: operators can connect when clients have used up theirs.
        let loops = try LoopGroup(
            "martlet-admin", snapshot: snapshot, sockets: sockets, resolved: [], services: services,
            connections: ConnectionLimit(.operators, maximum: services.descriptors.plan.operators), isForOperators: true
        )
        let opened = listeners
        state.withLock { state in
            state.admin = loops
            state.adminListeners = opened
        }
    }

    /// Opens the admin listener, or applies a new configuration to it.
    func openAdmin(
        _ blueprint: Blueprint, _ listeners: inout Listeners, _ inherited: inout InheritedSockets
    ) throws(StartError) -> [[ListenerSocket]] {
        let configuration = blueprint.configuration
        guard var configured = configuration.admin?.listeners else { return [] }
        let endpoints = state.withLock { state in
            let endpoints = state.adminEndpoints ?? AdminEndpoints(self)
            state.adminEndpoints = endpoints
            return endpoints
        }
        // A process that starts beside a running one on shared public ports has to share the admin port, too.
        let sharesPorts = configuration.server.listeners.contains(where: \.reusePort)
        for index in configured.indices { configured[index].reusePort = sharesPorts }
        let handler = ListenerHandler(areTasksStalled: stalls.areTasksStalled) { await endpoints.respond(to: $0) }
        return try listeners.open(
            configured, loops: 1, side: .admin, role: .local(handler), inherited: &inherited,
            security: [blueprint.tls.admin])
    }
}

/// The end of the admin listener, and what it shows of the last ten minutes.
struct AdminListenerPart: GatewayPart {
    private let recording = BackgroundTask()

    func follow(_ change: GatewayChange, in gateway: Gateway) {
        guard let endpoints = gateway.state.withLock({ $0.admin == nil ? nil : $0.adminEndpoints }) else { return }
        recording.start { [weak gateway] in
            while !Task.isCancelled, let gateway {
                await endpoints.recordCounters()
                // Until here, because the endpoints do not keep what they read.
                withExtendedLifetime(gateway) {}
                do { try await Task.sleep(for: AdminEndpoints.interval) } catch { return }
            }
        }
    }

    /// Admin requests are meant for the process that serves.
    func finish(in gateway: Gateway) async {
        recording.cancel()
        if gateway.state.withLock({ $0.hasSuccessor }) { drain(gateway) }
    }

    func stop(in gateway: Gateway) async {
        drain(gateway)
        await gateway.state.withLock { $0.admin }?.join(within: Gateway.joinTimeout)
    }

    private func drain(_ gateway: Gateway) {
        let (admin, hasSuccessor) = gateway.state.withLock { state in
            if state.ownsFiles { state.adminListeners.removeFiles() }
            return (state.admin, state.hasSuccessor)
        }
        let timeout = hasSuccessor ? Duration.seconds(2) : .milliseconds(300)
        admin?.drain(until: gateway.services.clock.monotonicTime + timeout, hasSuccessor: hasSuccessor)
    }
}
