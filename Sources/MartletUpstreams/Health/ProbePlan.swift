internal import MartletCore
internal import MartletFetch

/// The book that decides which endpoints are probed, for the monitor's thread.
final class ProbePlan: TransferPlan {
    private struct State {
        var book = HealthBook()
        /// Those that are not reported yet.
        var changes: [HealthChange] = []
    }

    private let clock: Clock
    private let onChange: @Sendable ([HealthChange]) -> Void
    private let state = Lock(State())

    init(_ clock: Clock, _ onChange: @escaping @Sendable ([HealthChange]) -> Void) {
        (self.clock, self.onChange) = (clock, onChange)
    }

    var counts: [String: HealthCounts] { state.withLock { $0.book.counts } }

    func follow(_ targets: [HealthTarget]) {
        let now = clock.monotonicTime
        state.withLock { $0.book.adopt(targets, at: now) }
    }

    func begin() -> [any Transfer] {
        let now = clock.monotonicTime
        let (due, keeps) = state.withLock { state in
            var due: [(target: Int, request: ProbeRequest)] = []
            while let next = state.book.begin(at: now) { due.append(next) }
            return (due, state.book.keepsConnections)
        }
        return due.map { target, request in
            ProbeTransfer(request: request, keepsConnection: keeps) { [self] in finish(target, $0) }
        }
    }

    private func finish(_ target: Int, _ result: ProbeResult) {
        let (now, random) = (clock.monotonicTime, Double.random(in: 0...1))
        state.withLock { state in
            if let change = state.book.finish(target, result, at: now, random: random) { state.changes.append(change) }
        }
    }

    func pause() -> Duration? {
        let (changes, next) = state.withLock { state in
            defer { state.changes = [] }
            return (state.changes, state.book.nextStart ?? .never)
        }
        if !changes.isEmpty { onChange(changes) }
        return next.since(clock.monotonicTime)
    }
}
