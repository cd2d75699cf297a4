package import MartletCore

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
        var worker: ExportWorker?
        var isStopped = false
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

    deinit { state.withLock { $0.worker?.stop(at: clock.monotonicTime) } }

    /// All spans so far, counted by outcome.
    package var counts: Counts { tally.counts }

    /// Sends spans to a collector from now on.
    /// - Parameter target: `nil` ends the thread, when it has sent what it has.
    /// - Throws: without a thread; all spans are lost then.
    package func follow(_ target: ExportTarget?) throws(HTTPCallError) {
        try state.withLock { state throws(HTTPCallError) in
            guard let target else {
                state.worker?.stop(at: clock.monotonicTime + .seconds(2))
                state.worker = nil
                return
            }
            if let worker = state.worker { return worker.follow(target) }
            guard !state.isStopped else { return }
            guard let worker = ExportWorker(target, resource, clock, reporter, tally) else { throw Self.notStarted }
            do {
                _ = try SystemThread(name: "martlet-traces") { worker.run() }
            } catch {
                throw Self.notStarted
            }
            state.worker = worker
        }
    }

    private static let notStarted = HTTPCallError(code: "tracing.not_started", message: "no thread or no libcurl")

    /// Takes the spans of requests that have ended, or drops them.
    package func take(_ traces: [FinishedTrace]) {
        guard let worker = state.withLock({ $0.worker }) else {
            return count(.shutdown, traces.reduce(0) { $0 + $1.spans.count })
        }
        worker.take(traces)
    }

    /// Counts spans that are lost.
    package func count(_ loss: SpanLoss, _ spans: Int) { tally.count(loss, spans) }

    /// Sends what is left, and ends the thread.
    /// - Parameter limit: what takes longer is lost.
    package func stop(within limit: Duration) async {
        let worker = state.withLock { state in
            state.isStopped = true
            defer { state.worker = nil }
            return state.worker
        }
        guard let worker else { return }
        let deadline = clock.monotonicTime + limit
        worker.stop(at: deadline)
        while !worker.hasEnded, clock.monotonicTime < deadline + .milliseconds(100) {
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
