package import MartletCore

/// Keeps a provider's calls apart from everything else: they run on threads of their own, a bounded number at a time.
///
/// A call that outlives its deadline is given up, but keeps its permit until it ends: however many calls hang, no more
/// than the configured number does.
package final class Bulkhead: Sendable {
    /// What has happened, for `/metrics`.
    package struct Counts: Sendable, Equatable {
        package var running = 0
        package var waiting = 0
        /// Calls that found too many waiting.
        package var saturated = 0
        /// Calls that were given up at their deadline while they ran.
        package var timedOut = 0

        package init(running: Int = 0, waiting: Int = 0, saturated: Int = 0, timedOut: Int = 0) {
            (self.running, self.waiting, self.saturated, self.timedOut) = (running, waiting, saturated, timedOut)
        }
    }

    private typealias Turn = OnceOnly<Bool>

    private struct State {
        var calls: BulkheadState
        var turns: [UInt64: Turn] = [:]
        var saturated = 0
        var timedOut = 0
    }

    package let limits: BulkheadLimits
    private let executor: BlockingExecutor
    private let clock: Clock
    private let state: Lock<State>

    /// - Parameter name: the provider's, for its threads.
    package init(_ name: String, _ limits: BulkheadLimits, clock: Clock) {
        self.limits = limits
        self.clock = clock
        executor = BlockingExecutor(name: "p-\(name)", threads: limits.concurrency)
        state = Lock(State(calls: BulkheadState(limits)))
    }

    package var counts: Counts {
        state.withLock { state in
            Counts(
                running: state.calls.running, waiting: state.calls.waiting, saturated: state.saturated,
                timedOut: state.timedOut)
        }
    }

    /// Runs a call as soon as it is its turn.
    ///
    /// - Parameters:
    ///   - deadline: when it is given up, whether it waits or runs.
    ///   - owner: the network that causes it.
    /// - Throws: what it throws; `unavailable` with `provider.saturated` if it had no turn, with `provider.timeout` if it
    ///   had not ended at its deadline.
    package func run<Value: Sendable>(
        until deadline: MonotonicTime, for owner: WorkOwner,
        _ call: @escaping @Sendable () async throws(AuthenticationError) -> Value
    ) async throws(AuthenticationError) -> Value {
        guard await enter(until: deadline, for: owner) else {
            state.withLock { $0.saturated += 1 }
            throw .unavailable(.providerSaturated)
        }
        let outcome = OnceOnly<Result<Value, AuthenticationError>>()
        let task = Task(executorPreference: executor) {
            do throws(AuthenticationError) { outcome.complete(.success(try await call())) } catch {
                outcome.complete(.failure(error))
            }
            self.leave()
        }
        let result = await withTaskCancellationHandler {
            await outcome.value(within: remaining(until: deadline))
        } onCancel: {
            outcome.complete(nil)
        }
        guard let result else {
            task.cancel()
            state.withLock { $0.timedOut += 1 }
            throw .unavailable(.providerTimeout)
        }
        return try result.get()
    }

    /// - Returns: whether the call may run.
    private func enter(until deadline: MonotonicTime, for owner: WorkOwner) async -> Bool {
        let turn = Turn()
        let (entry, displaced) = state.withLock { state -> (BulkheadState.Entry, Turn?) in
            let entry = state.calls.enter(for: owner)
            guard case .waits(let ticket, let displaced) = entry else { return (entry, nil) }
            state.turns[ticket] = turn
            return (entry, displaced.flatMap { state.turns.removeValue(forKey: $0) })
        }
        displaced?.complete(false)
        guard case .waits(let ticket, _) = entry else { return entry == .runs }
        let isAdmitted = await withTaskCancellationHandler {
            await turn.value(within: remaining(until: deadline))
        } onCancel: {
            turn.complete(nil)
        }
        if isAdmitted == nil {
            state.withLock { state in
                state.turns[ticket] = nil
                state.calls.cancel(ticket)
            }
        }
        return isAdmitted ?? false
    }

    /// Ends a call: the next one that still waits gets its turn.
    private func leave() {
        while true {
            let turn = state.withLock { state in
                state.calls.leave().map { state.turns.removeValue(forKey: $0) }
            }
            // One that gave up at this moment passes its turn on.
            guard let turn, turn?.complete(true) != true else { return }
        }
    }

    private func remaining(until deadline: MonotonicTime) -> Duration {
        let rest = deadline.nanoseconds.subtractingReportingOverflow(clock.monotonicTime.nanoseconds)
        return .nanoseconds(rest.overflow ? .max : max(rest.partialValue, 0))
    }
}

extension ErrorCode {
    /// Too many calls of a provider run and wait.
    package static let providerSaturated: ErrorCode = "provider.saturated"
    /// A call of a provider had not ended at its deadline.
    package static let providerTimeout: ErrorCode = "provider.timeout"
}

/// How many calls of a provider run, and wait, at a time.
package struct BulkheadLimits: Sendable, Hashable {
    /// The most calls that run; each may block a thread.
    package let concurrency: Int
    /// The most calls that wait for one of them to end: half of them for one network's neighbors, a quarter for itself.
    package let queue: Int

    package init(concurrency: Int, queue: Int) {
        self.concurrency = max(concurrency, 1)
        self.queue = max(queue, 0)
    }

    /// Those of a provider from a shared library, where the configuration has none.
    package static let standard = BulkheadLimits(concurrency: 64, queue: 256)
}
