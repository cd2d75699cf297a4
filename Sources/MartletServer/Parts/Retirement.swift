private import CLinux
internal import MartletAccounts
internal import MartletCore
internal import MartletResponder

/// Releases configurations that were replaced.
final class Retirement: GatewayPart {
    private struct State {
        /// Shut down the resources of replaced configurations.
        var tasks: [Int: Task<Void, Never>] = [:]
        var count = 0
        var working: Set<Int> = []
    }

    /// How long a reload waits for what the one before has replaced.
    private static let releaseTimeout = Duration.seconds(2)
    /// When most requests that use a replaced configuration have ended.
    private static let trimDelay = Duration.seconds(1)
    private static let pollInterval = Duration.milliseconds(20)

    private let state = Lock(State())

    /// Shuts a graph down that has served, but for the resources that the serving graph shares with it: its stores stay
    /// open until requests that use them have finished.
    ///
    /// Nothing keeps the rest of it: its memory is free once no request uses it.
    func begin(_ graph: Graph, keeping serving: Graph, in gateway: Gateway) {
        let store = graph.store === serving.store ? nil : graph.store
        let accounts = graph.accounts?.isSame(as: serving.accounts) == false ? graph.accounts : nil
        let work = gateway.parts.reversed().compactMap { $0.retire(graph) }
        let number = state.withLock { state in
            state.count += 1
            state.working.insert(state.count)
            return state.count
        }
        let task = Task { [self] in
            for end in work { await end() }
            state.withLock { _ = $0.working.remove(number) }
            try? await Task.sleep(for: Self.trimDelay)
            martlet_trim_heap()
            if store != nil || accounts != nil {
                try? await Task.sleep(for: LocalLimits.timeout)
                store?.shutdown()
                await accounts?.store.shutdown()
            }
            state.withLock { $0.tasks[number] = nil }
        }
        state.withLock { $0.tasks[number] = task }
    }

    /// Waits until the memory of replaced configurations is free: three at a time need half as much again as two.
    func waitUntilReleased(_ clock: Clock) async {
        let deadline = clock.monotonicTime + Self.releaseTimeout
        while state.withLock({ !$0.working.isEmpty }), clock.monotonicTime < deadline {
            try? await Task.sleep(for: Self.pollInterval)
        }
        martlet_trim_heap()
    }

    func stop(in gateway: Gateway) async {
        for task in state.withLock({ $0.tasks }).values {
            task.cancel()
            await task.value
        }
    }
}
