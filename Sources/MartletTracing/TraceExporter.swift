package import MartletCore
private import MartletFetch

/// Sends the spans of requests to a collector, on a thread of its own that exists only while there is `tracing:`.
///
/// Event loops hand spans over and go on: outcomes are counted, and affect no request.
package final class TraceExporter: SpanReceiving {
    /// Spans, counted by outcome.
    package struct Counts: Sendable, Equatable {
        package var sent = 0
        package var lost: [SpanLoss: Int] = [:]

        package init() {}
    }

    private struct State {
        var running: Running?
        var isStopped = false
    }

    private struct Running {
        let plan: ExportPlan
        let worker: TransferWorker

        func stop(at deadline: MonotonicTime) {
            plan.stop(at: deadline)
            worker.wake()
        }
    }

    private let resource: TraceDocument.Resource
    private let clock: Clock
    private let reporter: OutageReporter
    private let tally = ExportTally()
    private let state = Lock(State(), .workers)

    package init(_ resource: TraceDocument.Resource, clock: Clock, logger: Logger) {
        (self.resource, self.clock) = (resource, clock)
        reporter = OutageReporter("traces not sent", end: "traces sent again", clock: clock, logger: logger)
    }

    deinit { state.withLock { $0.running?.stop(at: clock.monotonicTime) } }

    /// All spans so far, counted by outcome.
    package var counts: Counts { tally.counts }

    /// Sends spans to a collector from now on.
    /// - Parameter target: `nil` ends the thread, when it has sent what it has.
    /// - Throws: without a thread; all spans are lost then.
    package func follow(_ target: ExportTarget?) throws(HTTPCallError) {
        try state.withLock { state throws(HTTPCallError) in
            guard let target else {
                state.running?.stop(at: clock.monotonicTime + .seconds(2))
                state.running = nil
                return
            }
            if let plan = state.running?.plan { return plan.follow(target) }
            guard !state.isStopped else { return }
            let plan = ExportPlan(target, resource, clock, reporter, tally)
            guard let worker = try? TransferWorker(name: "martlet-traces", plan: plan) else { throw Self.notStarted }
            state.running = Running(plan: plan, worker: worker)
        }
    }

    private static let notStarted = HTTPCallError(code: "tracing.not_started", message: "no thread or no libcurl")

    /// Takes the spans of requests that have ended, or drops them.
    package func take(_ traces: [FinishedTrace]) {
        guard let running = state.withLock({ $0.running }) else {
            return count(.shutdown, traces.reduce(0) { $0 + $1.spans.count })
        }
        if running.plan.take(traces) { running.worker.wake() }
    }

    /// Counts spans that are lost.
    package func count(_ loss: SpanLoss, _ spans: Int) { tally.count(loss, spans) }

    /// Sends what is left, and ends the thread.
    /// - Parameter limit: what takes longer is lost.
    package func stop(within limit: Duration) async {
        let running = state.withLock { state in
            state.isStopped = true
            defer { state.running = nil }
            return state.running
        }
        guard let running else { return }
        let deadline = clock.monotonicTime + limit
        running.stop(at: deadline)
        while !running.plan.hasEnded, clock.monotonicTime < deadline + .milliseconds(100) {
            try? await Task.sleep(for: .milliseconds(5))
        }
    }
}

/// Counts spans by outcome.
final class ExportTally: Sendable {
    private let content = Lock(TraceExporter.Counts())

    var counts: TraceExporter.Counts { content.withLock { $0 } }

    func count(_ loss: SpanLoss, _ spans: Int) {
        if spans > 0 { content.withLock { $0.lost[loss, default: 0] += spans } }
    }

    func count(sent spans: Int) { content.withLock { $0.sent += spans } }
}
