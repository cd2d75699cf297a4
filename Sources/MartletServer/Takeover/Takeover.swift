private import CLinux
private import MartletCore
private import MartletIO
private import Synchronization

/// The upgrade of the binary: starts a successor, waits until it serves, and leaves everything to it.
///
/// Whatever goes wrong before that leaves this process serving as it was.
final class Takeover: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        var successor: Successor?
        var isCancelled = false
    }

    /// How long a successor may take until it serves.
    private static let patience = Duration.seconds(60)

    private let gateway: Gateway
    private let handedOver: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameter handedOver: is called once when a successor serves; this process then has to end.
    init(_ gateway: Gateway, _ handedOver: @escaping @Sendable () -> Void) {
        self.gateway = gateway
        self.handedOver = handedOver
    }

    /// Starts a successor, unless one is on its way.
    func begin() {
        let logger = gateway.services.logger
        guard getpid() != 1 else {
            return logger.error(
                "no successor is started: it would end with this process, which is the first of its container")
        }
        let isFirst = state.withLock { state in
            guard state.task == nil else { return false }
            state.task = Task { await self.run() }
            return true
        }
        if !isFirst { logger.warning("no successor is started: one is on its way") }
    }

    /// Takes it back, if it is not done yet: a process that ends needs no successor.
    func cancel() async {
        let task = state.withLock { state in
            state.isCancelled = true
            state.successor?.cancel()
            return state.task
        }
        await task?.value
    }

    private func run() async {
        let logger = gateway.services.logger
        guard await handOver() else {
            return state.withLock { state in
                (state.task, state.successor) = (nil, nil)
            }
        }
        logger.info("the successor serves")
        handedOver()
    }

    private func handOver() async -> Bool {
        let (logger, clock) = (gateway.services.logger, gateway.services.clock)
        let shared = gateway.handedOver
        let successor: Successor
        do throws(IOError) {
            successor = try .start(CommandLine.arguments, groups: shared.groups, others: shared.others)
        } catch {
            logger.error("the successor could not be started; this process goes on", ("reason", error.description))
            return false
        }
        let pid = String(successor.pid)
        logger.info("a successor was started", ("pid", pid))
        state.withLock { state in
            state.successor = successor
            if state.isCancelled { successor.cancel() }
        }
        switch await successor.readiness(within: Takeover.patience, clock: clock) {
        case .ready:
            // The service manager watches the successor before this process ends.
            ServiceManager.notify("MAINPID=\(pid)")
            gateway.leaveEverything()
            successor.confirm()
            return true
        case .ended(let how):
            logger.error(
                "the successor ended before it served; this process goes on", ("pid", pid), ("reason", how))
        case .late:
            logger.error(
                "the successor took too long; this process goes on", ("pid", pid),
                ("seconds", String(Takeover.patience.components.seconds)))
            await successor.giveUp(clock: clock)
        case .cancelled:
            await successor.giveUp(clock: clock)
        }
        return false
    }
}
