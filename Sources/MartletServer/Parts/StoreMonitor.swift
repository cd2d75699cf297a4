private import CLinux
internal import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletProxy
internal import MartletRedis

/// Has the loops know when the store is unavailable, and when the process uses too much memory.
final class StoreMonitor: GatewayPart {
    /// How often the state of the store's connection is polled under `on_error: deny`.
    private static let interval = Duration.milliseconds(100)
    /// The polling interval while the store's state has no effect.
    private static let idleInterval = Duration.seconds(1)

    private let invalidator: CacheInvalidator
    private let task = BackgroundTask()

    init(_ invalidator: CacheInvalidator) { self.invalidator = invalidator }

    func follow(_ change: GatewayChange, in gateway: Gateway) {
        task.start { [self, weak gateway] in if let gateway { await run(gateway) } }
    }

    func report(into report: inout AdminReport, of graph: Graph, in gateway: Gateway) {
        if graph.blueprint.configuration.server.overload != nil { report.isMemoryHigh = gateway.services.memory.isOver }
    }

    func finish(in gateway: Gateway) async {
        task.cancel()
        gateway.services.memory.end()
    }

    /// Under `on_error: deny` the loops reject sessions, cached ones too, while the store is unavailable.
    private func run(_ gateway: Gateway) async {
        var wasRejecting = false
        while !Task.isCancelled {
            let graph = gateway.graph
            let configuration = graph.blueprint.configuration
            let isRequired = configuration.store.onError == .deny && graph.store.redis != nil
            watchMemory(configuration.server.overload, gateway.services)
            // Only a reload can make a store required.
            let isIdle = !isRequired && configuration.server.overload == nil
            do { try await Task.sleep(for: isIdle ? Self.idleInterval : Self.interval) } catch { return }
            let rejects = isRequired && graph.store.redis.map { $0.status.state != .connected } ?? false
            if rejects != wasRejecting {
                wasRejecting = rejects
                invalidator.post(.rejectSessions(rejects))
            }
        }
    }

    private func watchMemory(_ configuration: OverloadConfiguration?, _ services: Services) {
        let memory = services.memory
        guard configuration != nil || memory.isOver else { return }
        let (resident, limit) = (
            SystemInformation.residentBytes, MemoryLimit.current { SystemInformation.text(of: $0) }
        )
        if memory.read(resident: resident, limit: limit, percent: configuration?.memoryPercent) {
            services.logger.warning(
                memory.isOver ? "memory above its share, requests are rejected" : "memory below its share again",
                ("resident_bytes", String(resident ?? 0)), ("limit_bytes", String(limit ?? 0)))
        }
        if memory.shouldTrim(at: services.clock.monotonicTime.nanoseconds) { martlet_trim_heap() }
    }
}
