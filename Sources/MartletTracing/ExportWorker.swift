private import CCurl
internal import MartletCore
private import Synchronization

/// The exporter's thread: libcurl's multi handle, and the queue and the schedule that decide.
// nonisolated(unsafe): other threads only wake the handle, which libcurl allows from any thread, and only under the
// lock before it is closed; everything else happens on this thread.
@safe final class ExportWorker: Sendable {
    private struct State {
        var queue = SpanQueue()
        var schedule = ExportSchedule()
        var target: ExportTarget
        /// When it has to have ended; `nil` while it serves.
        var deadline: MonotonicTime?
        /// The thread has exited and the handle is freed.
        var isClosed = false
    }

    /// A document, kept until the collector has it.
    private struct Document {
        let bytes: [UInt8]
        let spans: Int
    }

    private static let longestWait: Int32 = 60_000

    private let resource: TraceDocument.Resource
    private let clock: Clock
    private let reporter: OutageReporter
    private let tally: ExportTally
    private let state: Mutex<State>
    // Used by the worker's own thread only, except for curl_multi_wakeup(3), which any thread may call.
    private nonisolated(unsafe) let multi: UnsafeMutableRawPointer

    private static let isStarted = martlet_curl_start() == CURLE_OK

    init?(
        _ target: ExportTarget, _ resource: TraceDocument.Resource, _ clock: Clock, _ reporter: OutageReporter,
        _ tally: ExportTally
    ) {
        guard Self.isStarted, let multi = unsafe curl_multi_init() else { return nil }
        unsafe self.multi = multi
        (self.resource, self.clock, self.reporter, self.tally) = (resource, clock, reporter, tally)
        state = Mutex(State(target: target))
    }

    var hasEnded: Bool { state.withLock(\.isClosed) }

    func follow(_ target: ExportTarget) { state.withLock { $0.target = target } }

    func take(_ traces: [FinishedTrace]) {
        let now = clock.monotonicTime
        let lost = state.withLock { state -> Int in
            guard !state.isClosed else { return traces.reduce(0) { $0 + $1.spans.count } }
            let (wasEmpty, wasFull) = (state.queue.isEmpty, state.queue.isFull)
            let lost = traces.reduce(0) { $0 + (state.queue.add($1) ? 0 : $1.spans.count) }
            state.schedule.added(at: now)
            if wasEmpty || !wasFull && state.queue.isFull { wake(state) }
            return lost
        }
        tally.count(.queueFull, lost)
    }

    func stop(at deadline: MonotonicTime) {
        state.withLock { state in
            state.deadline = deadline
            wake(state)
        }
    }

    /// Frees the handle of a worker whose thread has not been started.
    func discard() {
        state.withLock { $0.isClosed = true }
        _ = unsafe curl_multi_cleanup(multi)
    }

    private func wake(_ state: State) {
        if !state.isClosed { _ = unsafe curl_multi_wakeup(multi) }
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
                var running: Int32 = 0
                _ = unsafe curl_multi_perform(multi, &running)
                if let current = transfer, let code = finishedResult() {
                    _ = unsafe curl_multi_remove_handle(multi, current.handle)
                    transfer = nil
                    if ended(current.result(code), document?.spans ?? 0) { document = nil }
                } else {
                    _ = unsafe curl_multi_poll(multi, nil, 0, milliseconds(to: min(until, turn.deadline ?? until)), nil)
                }
            } else if let bytes = document?.bytes, let next = ExportTransfer(bytes, to: turn.target),
                unsafe curl_multi_add_handle(multi, next.handle) == CURLM_OK
            {
                transfer = next
            } else if ended(.rejected("libcurl setup failed"), document?.spans ?? 0) {
                document = nil
            }
        }
        if let transfer { _ = unsafe curl_multi_remove_handle(multi, transfer.handle) }
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

    private func finishedResult() -> CURLcode? {
        var left: Int32 = 0
        guard let message = unsafe curl_multi_info_read(multi, &left),
            unsafe message.pointee.msg == CURLMSG_DONE
        else { return nil }
        return unsafe martlet_curl_result(message)
    }

    /// Notes what became of a document.
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

    private func milliseconds(to time: MonotonicTime) -> Int32 {
        let nanoseconds = max(time.since(clock.monotonicTime).wholeNanoseconds, 0)
        return min(Int32(clamping: nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)), Self.longestWait)
    }

    private func close(losing spans: Int) {
        let left = state.withLock { state in
            state.isClosed = true
            return state.queue.removeAll()
        }
        tally.count(.shutdown, spans + left)
        _ = unsafe curl_multi_cleanup(multi)
    }
}
