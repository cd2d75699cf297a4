internal import MartletCore
private import MartletFetch

/// The exporter's thread: libcurl's multi handle, and the queue and the schedule that decide.
final class ExportWorker: Sendable {
    private struct State {
        var queue = SpanQueue()
        var schedule = ExportSchedule()
        var target: ExportTarget
        /// When it has to have ended; `nil` while it serves.
        var deadline: MonotonicTime?
        var hasEnded = false
    }

    /// A document, kept until the collector has it.
    private struct Document {
        let bytes: [UInt8]
        let spans: Int
    }

    private let resource: TraceDocument.Resource
    private let clock: Clock
    private let reporter: OutageReporter
    private let tally: ExportTally
    private let state: Lock<State>
    private let multi: MultiHandle

    init?(
        _ target: ExportTarget, _ resource: TraceDocument.Resource, _ clock: Clock, _ reporter: OutageReporter,
        _ tally: ExportTally
    ) {
        guard let multi = MultiHandle() else { return nil }
        self.multi = multi
        (self.resource, self.clock, self.reporter, self.tally) = (resource, clock, reporter, tally)
        state = Lock(State(target: target))
    }

    var hasEnded: Bool { state.withLock(\.hasEnded) }

    func follow(_ target: ExportTarget) { state.withLock { $0.target = target } }

    func take(_ traces: [FinishedTrace]) {
        let now = clock.monotonicTime
        let (lost, isDue) = state.withLock { state -> (Int, Bool) in
            guard !state.hasEnded else { return (traces.reduce(0) { $0 + $1.spans.count }, false) }
            let (wasEmpty, wasFull) = (state.queue.isEmpty, state.queue.isFull)
            let lost = traces.reduce(0) { $0 + (state.queue.add($1) ? 0 : $1.spans.count) }
            state.schedule.added(at: now)
            return (lost, wasEmpty || !wasFull && state.queue.isFull)
        }
        if isDue { multi.wake() }
        tally.count(.queueFull, lost)
    }

    func stop(at deadline: MonotonicTime) {
        state.withLock { $0.deadline = deadline }
        multi.wake()
    }
}

// MARK: - The thread

extension ExportWorker {
    /// What the thread does next, with what it needs for that.
    private struct Turn {
        let step: ExportSchedule.Step
        let batch: [FinishedTrace]
        let target: ExportTarget
        let deadline: MonotonicTime?
        let isEmpty: Bool
    }

    /// The main loop of the thread.
    func run() {
        var document: Document?
        var transfer: ExportTransfer?
        while true {
            let turn = nextTurn()
            switch turn.step {
            case .send: document = encoded(turn.batch)
            case .sendAgain, .wait: break
            }
            if case .wait(let until) = turn.step {
                let isDone = turn.isEmpty && document == nil && transfer == nil
                if let deadline = turn.deadline, isDone || deadline <= clock.monotonicTime { break }
                multi.perform()
                if let current = transfer, let finished = multi.nextFinished() {
                    unsafe multi.remove(current.handle)
                    transfer = nil
                    if ended(current.result(finished.result), document?.spans ?? 0) { document = nil }
                } else {
                    multi.wait(atMost: min(until, turn.deadline ?? until).since(clock.monotonicTime))
                }
            } else if let bytes = document?.bytes, let next = ExportTransfer(bytes, to: turn.target),
                unsafe multi.add(next.handle)
            {
                transfer = next
            } else if ended(.rejected("libcurl setup failed"), document?.spans ?? 0) {
                document = nil
            }
        }
        if let transfer { unsafe multi.remove(transfer.handle) }
        close(losing: document?.spans ?? 0)
    }

    private func nextTurn() -> Turn {
        let now = clock.monotonicTime
        return state.withLock { state in
            let step = state.schedule.next(at: now, isFull: state.queue.isFull, isStopping: state.deadline != nil)
            var batch: [FinishedTrace] = []
            switch step {
            case .send:
                batch = state.queue.take()
                state.schedule.began(leaves: !state.queue.isEmpty, at: now)
            case .sendAgain: state.schedule.began(leaves: !state.queue.isEmpty, at: now)
            case .wait: break
            }
            return Turn(
                step: step, batch: batch, target: state.target, deadline: state.deadline, isEmpty: state.queue.isEmpty)
        }
    }

    private func encoded(_ batch: [FinishedTrace]) -> Document {
        Document(
            bytes: TraceDocument.bytes(of: batch, from: resource), spans: batch.reduce(0) { $0 + $1.spans.count })
    }

    /// Notes the outcome of a document.
    /// - Returns: whether it is over with it.
    private func ended(_ result: ExportResult, _ spans: Int) -> Bool {
        let (now, random) = (clock.monotonicTime, Double.random(in: 0...1))
        let outcome = state.withLock { $0.schedule.ended(result, at: now, random: random) }
        switch result {
        case .accepted(0): reporter.succeeded()
        case .accepted(let count): reporter.failed("tracing.rejected", "the collector did not take \(count) spans")
        case .rejected(let reason): reporter.failed("tracing.rejected", reason)
        case .unavailable(let reason, _): reporter.failed("tracing.unavailable", reason)
        }
        switch outcome {
        case .again: return false
        case .drop(let loss): tally.count(loss, spans)
        case .done(let lost):
            tally.count(.rejected, min(lost, spans))
            tally.count(sent: spans - min(lost, spans))
        }
        return true
    }

    private func close(losing spans: Int) {
        let left = state.withLock { state in
            state.hasEnded = true
            return state.queue.removeAll()
        }
        tally.count(.shutdown, spans + left)
        multi.close()
    }
}
