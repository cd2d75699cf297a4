internal import MartletConfig
internal import MartletCore
internal import MartletIO

extension Gateway {
    func watchLoops(_ limit: Duration) throws(StartError) {
        let (loops, admin, listeners) = state.withLock { ($0.loops, $0.admin, $0.adminListeners) }
        let watched = (loops?.watched() ?? []) + (admin?.watched(serving: listeners.descriptors) ?? [])
        let watchdog: Watchdog
        do throws(IOError) {
            watchdog = try Watchdog(
                watched, limit: limit, stalls: stalls, logger: services.logger.with(("component", "server")))
        } catch {
            throw StartError(error, exit: .unavailable)
        }
        do throws(SystemThreadError) {
            try watchdog.start()
        } catch {
            throw StartError(error, exit: .unavailable)
        }
        state.withLock { $0.watchdog = watchdog }
    }

    /// Whether an event loop or the threads of tasks stand still.
    package var isStalled: Bool { stalls.isAny }
}

/// The watchdog, once the loops have started.
struct WatchdogPart: GatewayPart {
    func lead(_ change: GatewayChange, in gateway: Gateway) {
        gateway.state.withLock { $0.watchdog }?.follow(change.configuration.server.watchdog)
    }

    /// Loops that end do not turn, and their sockets are closed.
    func finish(in gateway: Gateway) async { gateway.state.withLock { $0.watchdog }?.stop() }
}
