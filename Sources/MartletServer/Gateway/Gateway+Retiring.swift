private import CLinux
internal import MartletAccounts
internal import MartletCore
internal import MartletResponder

/// What is left of replaced configurations.
struct Retirement {
    /// Shut down their resources.
    var tasks: [Int: Task<Void, Never>] = [:]
    /// How many there were.
    var count = 0
    /// Those that still have work in progress.
    var working: Set<Int> = []
}

/// Releases a configuration that was replaced.
extension Gateway {
    /// How long a reload waits for what the one before has replaced.
    private static let releaseTimeout = Duration.seconds(2)
    /// When most requests that use a replaced configuration have ended.
    private static let trimDelay = Duration.seconds(1)
    private static let pollInterval = Duration.milliseconds(20)

    /// Shuts a graph down that has served, but for the resources that the serving graph shares with it: its stores stay
    /// open until requests that use them have finished.
    ///
    /// Nothing keeps the rest of it: its memory is free once no request uses it.
    func retire(_ graph: Graph, keeping serving: Graph) async {
        await Gateway.shutdown(graph.providers)
        keepResources(of: serving)
        let store = graph.store === serving.store ? nil : graph.store
        let accounts = graph.accounts?.isSame(as: serving.accounts) == false ? graph.accounts : nil
        let (events, jobs) = (graph.events, graph.jobs)
        let number = state.withLock { state in
            state.retirement.count += 1
            state.retirement.working.insert(state.retirement.count)
            return state.retirement.count
        }
        let task = Task { [self] in
            await events?.stop(within: Gateway.deliveryTimeout)
            await jobs?.stop(within: Gateway.deliveryTimeout)
            state.withLock { _ = $0.retirement.working.remove(number) }
            try? await Task.sleep(for: Self.trimDelay)
            martlet_trim_heap()
            if store != nil || accounts != nil {
                try? await Task.sleep(for: LocalLimits.timeout)
                store?.shutdown()
                await accounts?.store.shutdown()
            }
            state.withLock { $0.retirement.tasks[number] = nil }
        }
        state.withLock { $0.retirement.tasks[number] = task }
    }

    /// Waits until the memory of replaced configurations is free, before another one is read: three at a time need half
    /// as much again as two.
    package func releaseReplaced() async {
        let deadline = services.clock.monotonicTime + Self.releaseTimeout
        while state.withLock({ !$0.retirement.working.isEmpty }), services.clock.monotonicTime < deadline {
            try? await Task.sleep(for: Self.pollInterval)
        }
        martlet_trim_heap()
    }
}
