internal import MartletAccounts
internal import MartletCore
internal import MartletIdentities
internal import MartletProvider

/// The background work on the accounts of one configuration: jobs, and the checks of grants.
final class IdentityJobs: Sendable {
    let runner: JobRunner
    private let checkers: [GrantChecker]
    private let tasks = Lock<[Task<Void, Never>]>([])

    init(_ surroundings: JobRunner.Surroundings, clock: Clock, logger: Logger) {
        let runner = JobRunner(surroundings, clock: clock, logger: logger)
        self.runner = runner
        checkers =
            surroundings.keys.map { keys in
                surroundings.providers.compactMap { provider in
                    GrantChecker(
                        provider, store: surroundings.store, leases: surroundings.leases, keys: keys, runner: runner,
                        clock: clock, logger: logger)
                }
            } ?? []
    }

    func start() {
        let started =
            [Task { [runner] in await runner.run() }] + checkers.map { checker in Task { await checker.run() } }
        tasks.withLock { $0 = started }
    }

    /// Ends the work: waits for calls in progress, and cancels them after a limit.
    func stop(within limit: Duration = EventDelivery.stopTimeout) async {
        runner.stop()
        for checker in checkers { checker.stop() }
        let tasks = tasks.withLock { $0 }
        let timer = Task {
            try? await Task.sleep(for: limit)
            for task in tasks { task.cancel() }
        }
        for task in tasks { await task.value }
        timer.cancel()
    }
}

/// The jobs of the configuration in use.
struct JobsPart: GatewayPart {
    func follow(_ change: GatewayChange, in gateway: Gateway) { change.next.jobs?.start() }

    func retire(_ graph: Graph) -> (@Sendable () async -> Void)? {
        guard let jobs = graph.jobs else { return nil }
        return { await jobs.stop() }
    }

    func stop(in gateway: Gateway) async { await gateway.graph.jobs?.stop() }
}
