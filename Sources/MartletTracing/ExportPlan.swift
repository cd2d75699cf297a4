internal import MartletCore
internal import MartletFetch

/// The queue and the schedule that decide what is sent, for the exporter's thread.
final class ExportPlan: TransferPlan {
    private struct State {
        var queue = SpanQueue()
        var schedule = ExportSchedule()
        var target: ExportTarget
        /// Kept until the collector has it.
        var document: Document?
        /// When the thread has to have ended; `nil` while it serves.
        var deadline: MonotonicTime?
        var hasEnded = false

        func next(at now: MonotonicTime) -> ExportSchedule.Step {
            schedule.next(at: now, isFull: queue.isFull, isStopping: deadline != nil)
        }
    }

    private struct Document {
        let bytes: [UInt8]
        let spans: Int
    }

    private let resource: TraceDocument.Resource
    private let clock: Clock
    private let reporter: OutageReporter
    private let tally: ExportTally
    private let state: Lock<State>

    init(
        _ target: ExportTarget, _ resource: TraceDocument.Resource, _ clock: Clock, _ reporter: OutageReporter,
        _ tally: ExportTally
    ) {
        (self.resource, self.clock, self.reporter, self.tally) = (resource, clock, reporter, tally)
        state = Lock(State(target: target))
    }

    var hasEnded: Bool { state.withLock(\.hasEnded) }

    func follow(_ target: ExportTarget) { state.withLock { $0.target = target } }

    /// Takes spans, or drops them.
    /// - Returns: whether the thread is to be woken.
    func take(_ traces: [FinishedTrace]) -> Bool {
        let now = clock.monotonicTime
        let (lost, isDue) = state.withLock { state -> (Int, Bool) in
            guard !state.hasEnded else { return (traces.reduce(0) { $0 + $1.spans.count }, false) }
            let (wasEmpty, wasFull) = (state.queue.isEmpty, state.queue.isFull)
            let lost = traces.reduce(0) { $0 + (state.queue.add($1) ? 0 : $1.spans.count) }
            state.schedule.added(at: now)
            return (lost, wasEmpty || !wasFull && state.queue.isFull)
        }
        tally.count(.queueFull, lost)
        return isDue
    }

    func stop(at deadline: MonotonicTime) { state.withLock { $0.deadline = deadline } }
}

// MARK: - The thread

extension ExportPlan {
    func begin() -> [any Transfer] {
        let now = clock.monotonicTime
        let (batch, kept, target) = state.withLock { state -> ([FinishedTrace]?, Document?, ExportTarget) in
            let step = state.next(at: now)
            if case .wait = step { return (nil, nil, state.target) }
            let batch = step == .send ? state.queue.take() : nil
            state.schedule.began(leaves: !state.queue.isEmpty, at: now)
            return (batch, state.document, state.target)
        }
        guard let document = batch.map(encoded) ?? kept else { return [] }
        state.withLock { $0.document = document }
        return [ExportTransfer(document: document.bytes, target: target) { [self] in end($0, document.spans) }]
    }

    private func encoded(_ batch: [FinishedTrace]) -> Document {
        Document(
            bytes: TraceDocument.bytes(of: batch, from: resource), spans: batch.reduce(0) { $0 + $1.spans.count })
    }

    /// Notes what became of a document.
    private func end(_ result: ExportResult, _ spans: Int) {
        let (now, random) = (clock.monotonicTime, Double.random(in: 0...1))
        let outcome = state.withLock { state in
            let outcome = state.schedule.ended(result, at: now, random: random)
            if outcome != .again { state.document = nil }
            return outcome
        }
        switch result {
        case .accepted(0): reporter.succeeded()
        case .accepted(let count): reporter.failed("tracing.rejected", "the collector did not take \(count) spans")
        case .rejected(let reason): reporter.failed("tracing.rejected", reason)
        case .unavailable(let reason, _): reporter.failed("tracing.unavailable", reason)
        }
        switch outcome {
        case .again: break
        case .drop(let loss): tally.count(loss, spans)
        case .done(let lost):
            tally.count(.rejected, min(lost, spans))
            tally.count(sent: spans - min(lost, spans))
        }
    }

    func pause() -> Duration? {
        let now = clock.monotonicTime
        return state.withLock { state in
            guard case .wait(let until) = state.next(at: now) else { return .zero }
            guard let deadline = state.deadline else { return until.since(now) }
            let isDone = state.queue.isEmpty && state.document == nil
            return isDone || deadline <= now ? nil : min(until, deadline).since(now)
        }
    }

    func close() {
        let left = state.withLock { state in
            state.hasEnded = true
            return state.queue.removeAll() + (state.document?.spans ?? 0)
        }
        tally.count(.shutdown, left)
    }
}
