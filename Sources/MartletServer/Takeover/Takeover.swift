private import CLinux
private import MartletCore
private import MartletIO

/// The upgrade of the binary: starts a successor, waits until it is ready, and passes the sockets to it.
///
/// After a failure before that, this process keeps serving.
package final class Takeover: Sendable {
    private struct State {
        var isRunning = false
        var successor: Successor?
        var isCancelled = false
    }

    private static let timeout = Duration.seconds(60)

    private let gateway: Gateway
    private let onHandover: @Sendable () -> Void
    private let state = Lock(State())
    private let work = SharedWork()

    /// - Parameter onHandover: called once when a successor serves; this process then has to drain and exit.
    package init(_ gateway: Gateway, _ onHandover: @escaping @Sendable () -> Void) {
        self.gateway = gateway
        self.onHandover = onHandover
    }

    /// Starts a successor, unless a takeover is in progress.
    package func begin() {
        let logger = gateway.services.logger
        guard getpid() != 1 else {
            return logger.error(
                "upgrade not possible: this process is PID 1, and a successor would end with its container")
        }
        let isFirst = state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard isFirst else { return logger.warning("upgrade already in progress") }
        Task { await work.run { await self.run() } }
    }

    /// Cancels a takeover in progress, because this process shuts down.
    package func cancel() async {
        let (successor, isRunning) = state.withLock { state in
            state.isCancelled = true
            return (state.successor, state.isRunning)
        }
        successor?.cancel()
        if isRunning { await work.run {} }
    }

    private func run() async {
        let logger = gateway.services.logger
        guard await handOver() else {
            return state.withLock { state in
                (state.isRunning, state.successor) = (false, nil)
            }
        }
        logger.info("successor ready")
        onHandover()
    }

    private func handOver() async -> Bool {
        let (logger, clock) = (gateway.services.logger, gateway.services.clock)
        let sockets = gateway.socketsForSuccessor
        let successor: Successor
        do throws(IOError) {
            successor = try .start(SystemInformation.arguments, groups: sockets.groups, others: sockets.others)
        } catch {
            logger.error("successor could not be started; this process keeps serving", ("reason", error.description))
            return false
        }
        let pid = String(successor.pid)
        logger.info("successor started", ("pid", pid))
        let isCancelled = state.withLock { state in
            state.successor = successor
            return state.isCancelled
        }
        if isCancelled { successor.cancel() }
        switch await successor.waitUntilReady(timeout: Takeover.timeout, clock: clock) {
        case .ready:
            // The service manager has to follow the successor before this process exits.
            ServiceManager.notify("MAINPID=\(pid)")
            gateway.releaseOwnership()
            successor.confirm()
            return true
        case .ended(let how):
            logger.error(
                "successor exited before it was ready; this process keeps serving", ("pid", pid), ("reason", how))
        case .timedOut:
            logger.error(
                "successor not ready in time; this process keeps serving", ("pid", pid),
                ("seconds", String(Takeover.timeout.components.seconds)))
            await successor.abort(clock: clock)
        case .cancelled:
            await successor.abort(clock: clock)
        }
        return false
    }
}
