private import CLinux
package import MartletConfig
package import MartletCore
package import MartletDecisions
private import Synchronization

/// Writes log lines to a descriptor or a file on its own thread, so that logging never blocks.
///
/// Lines that cannot be written, because the reader of the log is slow or gone, or the disk is full, are lost and
/// counted.
package final class LogSink: AccessLogging, LogWriting {
    /// What operators should know of a log.
    enum Notice: Sendable, Equatable {
        case failed(reason: String)
        case recovered(lines: Int, seconds: Int64)
        case reopened
        case notReopened(reason: String)
    }

    private struct State: ~Copyable {
        var pending = ByteBuffer()
        var isWriting = false
        var isStopped = false
        var wantsReopening = false
    }

    private static let limit = SharedBound.logLines.bytes
    /// That of the lines which requests cause: the rest is for what the gateway has to say.
    private static let limitOfRequests = SharedBound.logLines.clientPart(of: limit)
    /// The memory of larger batches is freed after writing.
    private static let retainedBytes = 256 * 1024
    /// How long a wait for a pipe lasts before it is seen whether something else is to be done.
    private static let pipeWait: Int32 = 100

    /// The current format.
    package var format: AccessFormat { isText.load(ordering: .relaxed) ? .text : .json }
    private let isText: Atomic<Bool>
    /// An `EventTime`.
    private let time = Atomic(EventTime.seconds.rawValue)
    /// The name of this process in every line; none if empty.
    package let instanceID: String
    /// The path of the file, or `stdout`, for the metrics.
    let name: String
    private let isTerminal: Bool
    private let lines: LineWriter
    private let state = Lock(State())
    private let lost = Atomic<Int>(0)
    /// Those of them for which there was no room, since the thread last looked.
    private let overflow = Atomic<Int>(0)
    /// Whether a loss is not over; only the thread uses it.
    private let isLosing = Atomic(false)
    private let signal = ThreadSignal()
    private let notify: @Sendable (LogSink, Notice) -> Void
    /// Every sink of the process; their threads retain them.
    private static let all = Lock<[LogSink]>([])

    /// - Parameters:
    ///   - format: `auto` is text on a terminal, JSON lines elsewhere.
    ///   - descriptor: the descriptor to write to.
    ///   - instanceID: the name of this process in every line; none if empty.
    package convenience init(
        _ format: LogConfiguration.Format, descriptor: Int32, instanceID: String = ""
    ) throws(SystemThreadError) {
        try self.init(
            format, LogDestination(descriptor: descriptor), name: descriptor == 1 ? "stdout" : "stderr",
            instanceID: instanceID
        ) { sink, notice in sink.writeOwn(notice) }
    }

    /// - Parameters:
    ///   - destination: what to write to.
    ///   - name: the path of the file, or `stdout`.
    ///   - notify: called on the thread.
    init(
        _ format: LogConfiguration.Format, _ destination: consuming LogDestination, name: String, instanceID: String,
        notify: @escaping @Sendable (LogSink, Notice) -> Void
    ) throws(SystemThreadError) {
        self.name = name
        self.instanceID = instanceID
        self.notify = notify
        isTerminal = isatty(destination.descriptor) == 1
        isText = Atomic(LogSink.isText(format, isTerminal))
        lines = LineWriter(destination)
        _ = try SystemThread(name: "martlet-log") { [self] in work() }
        LogSink.all.withLock { $0.append(self) }
    }

    /// Switches to another format.
    ///
    /// - Returns: whether it differs from the current one.
    func setFormat(_ format: LogConfiguration.Format) -> Bool {
        let next = LogSink.isText(format, isTerminal)
        return isText.exchange(next, ordering: .relaxed) != next
    }

    func setTime(_ next: EventTime) { time.store(next.rawValue, ordering: .relaxed) }

    private static func isText(_ format: LogConfiguration.Format, _ isTerminal: Bool) -> Bool {
        switch format {
        case .text: true
        case .json: false
        case .auto: isTerminal
        }
    }

    /// The number of lines that were lost.
    package var lostLines: Int { lost.load(ordering: .relaxed) }

    // MARK: Adding lines

    /// Enqueues whole lines of access records; swaps the buffers if the queue is empty.
    package func take(_ lines: inout ByteBuffer) {
        let isFirst = add(&lines, upTo: LogSink.limitOfRequests)
        lines.removeAll()
        if isFirst { signal.wake() }
    }

    /// - Parameter limit: of the bytes that are buffered then.
    private func add(_ lines: inout ByteBuffer, upTo limit: Int) -> Bool {
        // A closure cannot consume an inout parameter, only a local variable.
        var own = lines.take()
        let outcome: (isFirst: Bool, isLost: Bool) = state.withLock { state in
            guard state.pending.count + own.count <= limit, !state.isStopped else { return (false, true) }
            guard state.pending.isEmpty else {
                unsafe state.pending.append(own.bytes)
                return (false, false)
            }
            swap(&state.pending, &own)
            return (true, false)
        }
        if outcome.isLost { countOverflow(own) }
        lines = own
        return outcome.isFirst
    }

    @inline(never)
    private func countOverflow(_ lines: borrowing ByteBuffer) {
        let count = unsafe LogDestination.count(lines.bytes[...])
        lost.add(count, ordering: .relaxed)
        overflow.add(count, ordering: .relaxed)
    }

    /// Enqueues one event.
    package func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)]) {
        var line = EventLine.make(
            level, event, fields, format: format, instanceID: instanceID, at: Clock.system.unixMilliseconds,
            as: EventTime(rawValue: time.load(ordering: .relaxed)) ?? .seconds)
        if add(&line, upTo: LogSink.limit) { signal.wake() }
    }

    /// Reports lost lines in its own file; a failure to write would be lost as well, so only recovery is logged.
    private func writeOwn(_ notice: Notice) {
        guard case .recovered(let lines, let seconds) = notice else { return }
        write(.warning, "log lines lost", [("file", name), ("lines", String(lines)), ("seconds", String(seconds))])
    }

    // MARK: Control

    /// Has the thread open the file again, when it has written what is enqueued.
    func reopen() {
        state.withLock { $0.wantsReopening = true }
        signal.wake()
    }

    /// Ends the thread when it has written what is enqueued, and closes the file.
    func stop() {
        state.withLock { $0.isStopped = true }
        signal.wake()
    }

    /// Waits until every enqueued line is written, at most for the timeout; called before the process exits.
    package func flush(timeout: Duration = .seconds(1)) {
        let deadline = Clock.system.monotonicTime + timeout
        signal.wake()
        while !state.withLock({ $0.pending.isEmpty && !$0.isWriting }), Clock.system.monotonicTime < deadline {
            usleep(1000)
        }
    }

    /// Flushes every sink.
    package static func flushAll(timeout: Duration) {
        for sink in all.withLock({ $0 }) { sink.flush(timeout: timeout) }
    }

    // MARK: The thread

    private func work() {
        var batch = ByteBuffer()
        while true {
            awaitSignal()
            batch = exchange(batch)
            write(batch)
            if batch.count > LogSink.retainedBytes { batch.release() }
            batch.removeAll()
            let (isStopped, wantsReopening) = state.withLock { state in
                state.isWriting = false
                defer { state.wantsReopening = false }
                return (state.isStopped && state.pending.isEmpty, state.wantsReopening)
            }
            if wantsReopening { openAgain() }
            if isStopped { break }
        }
        lines.close()
        LogSink.all.withLock { all in all.removeAll { $0 === self } }
    }

    /// Waits for lines, or until a loss is over.
    private func awaitSignal() {
        guard isLosing.load(ordering: .relaxed) else { return signal.wait() }
        _ = signal.wait(milliseconds: Int32(clamping: LostLines.quietTime.wholeMilliseconds))
    }

    /// Swaps an empty buffer for the queued lines.
    private func exchange(_ empty: consuming ByteBuffer) -> ByteBuffer {
        var buffer = empty
        state.withLock { state in
            swap(&state.pending, &buffer)
            state.isWriting = true
        }
        return buffer
    }

    private func write(_ batch: borrowing ByteBuffer) {
        let outcome = batch.isEmpty ? LogDestination.Outcome() : unsafe lines.write(batch.bytes, wait: waitForPipe)
        let mayHaveLost = outcome.lost > 0 || overflow.load(ordering: .relaxed) > 0
        guard mayHaveLost || isLosing.load(ordering: .relaxed) else { return }
        lost.add(outcome.lost, ordering: .relaxed)
        let missed = overflow.exchange(0, ordering: .relaxed)
        if let notice = lines.account(outcome, overflow: missed, wrote: !batch.isEmpty) { notify(self, notice) }
        isLosing.store(lines.isLosing, ordering: .relaxed)
    }

    /// Waits until a pipe may accept bytes.
    /// - Returns: `false` if something else is to be done.
    private func waitForPipe(_ descriptor: Int32) -> Bool {
        var pipe = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = unsafe poll(&pipe, 1, LogSink.pipeWait)
        return state.withLock { !$0.isStopped && !$0.wantsReopening }
    }

    private func openAgain() {
        do throws(LogDestination.Failure) {
            try lines.reopen()
            notify(self, .reopened)
        } catch {
            notify(self, .notReopened(reason: error.reason))
        }
    }
}

/// What the thread of a sink owns: the destination, and what was lost.
private final class LineWriter: Sendable {
    private struct State: ~Copyable {
        var destination: LogDestination?
        var losses = LostLines()
    }

    // Only the thread uses it; the lock is what the compiler asks for.
    private let state: Lock<State>

    init(_ destination: consuming LogDestination) { state = Lock(State(destination: destination), .logDestination) }

    var isLosing: Bool { state.withLock { $0.losses.isOpen } }

    func write(_ lines: UnsafeBufferPointer<UInt8>, wait: (Int32) -> Bool) -> LogDestination.Outcome {
        state.withLock { unsafe $0.destination?.write(lines, wait: wait) ?? LogDestination.Outcome() }
    }

    func reopen() throws(LogDestination.Failure) {
        try state.withLock { state throws(LogDestination.Failure) in try state.destination?.reopen() }
    }

    func close() { state.withLock { $0.destination = nil } }

    /// Counts what was lost.
    /// - Returns: what is to be said.
    func account(_ outcome: LogDestination.Outcome, overflow: Int, wrote: Bool) -> LogSink.Notice? {
        state.withLock { state in
            let now = Clock.system.monotonicTime
            if wrote, outcome.failure == nil { state.losses.written() }
            let begins = state.losses.lost(outcome.lost + overflow, isWriting: outcome.failure == nil, at: now)
            if begins { return .failed(reason: outcome.failure?.reason ?? "the reader is too slow") }
            return state.losses.summary(at: now).map { .recovered(lines: $0.lines, seconds: $0.seconds) }
        }
    }
}

extension LogSink {
    /// A sink for commands, which write their results to standard output.
    package static func standardError() throws(StartError) -> LogSink {
        do {
            return try LogSink(.text, descriptor: 2)
        } catch {
            throw StartError(code: error.code, message: error.description, exit: .internalFault)
        }
    }
}
