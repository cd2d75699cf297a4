internal import MartletCore
internal import MartletCrypto
private import Synchronization

/// Counts events that were lost.
final class LostEvents: Sendable {
    private let number = Atomic(0)

    var count: Int { number.load(ordering: .relaxed) }

    func add(_ count: Int) { number.add(count, ordering: .relaxed) }
}

/// Writes the chain of one destination, on a thread of its own.
final class AuditWriter: Sendable {
    /// How often the file is compared with its path.
    private static let checkInterval = Duration.seconds(5)
    /// The pause between the first two attempts; later ones are twice as long each, up to a second.
    private static let retryInterval = Duration.milliseconds(100)
    private static let longestRetryInterval = Duration.seconds(1)
    /// How long a destination may fail before the log says so, while its lines still wait.
    private static let outageLimit = Duration.seconds(5)
    /// How long lines are attempted to be written once the log ends.
    private static let endLimit = Duration.seconds(1)
    /// How long the process before this one may need the file.
    private static let handoverLimit = Duration.seconds(60)

    private let sink: any AuditSink
    private let queue = AuditQueue()
    private let key: Lock<AuditKey>
    /// Where the chain begins, if that is known before the thread starts.
    private let start: Lock<AuditStart?>
    private let lost = LostEvents()
    private let total: LostEvents
    private let clock: Clock
    private let outages: OutageReporter
    private let logger: Logger
    private let hasEnded = Atomic(false)

    /// - Parameter waits: whether the destination is opened by the thread, which waits until another process has let it
    ///   go; otherwise it has to be possible now.
    init(
        _ sink: any AuditSink, key: AuditKey, waits: Bool, total: LostEvents, clock: Clock, logger: Logger
    ) throws(AuditError) {
        self.sink = sink
        self.key = Lock(key)
        self.total = total
        self.clock = clock
        self.logger = logger.with(("destination", sink.name))
        outages = OutageReporter(
            "audit log not written", end: "audit log written again", clock: clock, logger: self.logger)
        start = Lock(waits ? nil : try sink.open())
    }

    /// Starts the thread.
    func run() {
        let thread = try? SystemThread(name: "martlet-audit") { [self] in
            work()
            hasEnded.store(true, ordering: .releasing)
        }
        guard thread == nil else { return }
        outages.failed(.auditNotStarted, "no thread")
        hasEnded.store(true, ordering: .releasing)
    }

    /// Takes an event; never waits.
    func add(_ body: [UInt8]) {
        guard !queue.add(body) else { return }
        lose(1)
        outages.failed(.auditOverflow, "too many events are waiting")
    }

    /// Goes on in the file that the path names now.
    func reopen() { queue.reopen() }

    /// Signs with another key from now on.
    func replace(_ key: AuditKey) { queue.replace(key) }

    /// Writes what waits, and ends; what is not written after the limit is lost.
    func end(within limit: Duration) async {
        queue.end()
        let deadline = clock.monotonicTime + limit
        while !hasEnded.load(ordering: .acquiring), clock.monotonicTime < deadline {
            try? await Task.sleep(for: .milliseconds(5))
        }
        lose(queue.abandon())
    }

    private func lose(_ count: Int) {
        guard count > 0 else { return }
        lost.add(count)
        total.add(count)
    }

    // MARK: The thread

    private var now: AuditTime {
        AuditTime(milliseconds: clock.unixMilliseconds, monotonic: clock.monotonicTime)
    }

    private func work() {
        var checked = clock.monotonicTime
        while var stream = open() {
            var isOpen = true
            while isOpen {
                let work = queue.take(within: pause(stream, checked))
                if let key = work.key { change(&stream, to: key) }
                if work.reopens || clock.monotonicTime.since(checked) >= Self.checkInterval {
                    checked = clock.monotonicTime
                    isOpen = follow(&stream)
                }
                if isOpen {
                    isOpen = write(work.bodies, to: &stream)
                } else {
                    lose(work.bodies.count)
                }
                guard work.isLast else { continue }
                if isOpen { _ = write(AuditHead(cause: .end), to: &stream) }
                return sink.close()
            }
            sink.close()
        }
    }

    private func pause(_ stream: AuditStream, _ checked: MonotonicTime) -> Duration {
        let check = checked + Self.checkInterval
        return min(stream.schedule.due ?? check, check).since(clock.monotonicTime)
    }

    /// Opens the destination, and writes the head that the chain begins or goes on with.
    /// - Returns: `nil` if the log ends before that is possible.
    private func open() -> AuditStream? {
        let begin = clock.monotonicTime
        while true {
            do throws(AuditError) {
                let given = start.withLock { start in
                    let given = start
                    start = nil
                    return given
                }
                let start = if let given { given } else { try sink.open() }
                if let stream = try self.begin(start) { return stream }
            } catch {
                let isExpected = error.code == .auditFileInUse && clock.monotonicTime < begin + Self.handoverLimit
                if !isExpected { outages.failed(error) }
            }
            if queue.isEnding { return nil }
            queue.wait(Self.retryInterval)
        }
    }

    private func begin(_ start: AuditStart) throws(AuditError) -> AuditStream? {
        let key = key.withLock { $0 }
        var stream: AuditStream
        let head: AuditHead
        do throws(CryptoError) {
            switch start {
            case .new(let torn):
                stream = AuditStream(try AuditChain(), key: key)
                head = AuditHead(cause: torn == nil ? .start : .torn, opens: true, torn: torn)
            case .behind(let tail):
                stream = AuditStream(tail.chain, key: key)
                head = AuditHead(cause: tail.torn == nil ? .resume : .torn, torn: tail.torn)
            }
        } catch {
            throw AuditError(.auditNotWritten, error.message)
        }
        // Lines before the first head would belong to no file.
        while !write(head, to: &stream) {
            if queue.isEnding { return nil }
            lose(queue.drop())
            queue.wait(Self.retryInterval)
        }
        return stream
    }

    private func change(_ stream: inout AuditStream, to key: AuditKey) {
        self.key.withLock { $0 = key }
        stream.key = key
        _ = write(AuditHead(cause: .key), to: &stream)
    }

    /// Goes on in another file if this one was moved or emptied.
    /// - Returns: whether the destination is open.
    private func follow(_ stream: inout AuditStream) -> Bool {
        do throws(AuditError) {
            if sink.wasEmptied { return open(emptied: &stream) }
            guard try sink.prepareRotation() else { return true }
            _ = write(AuditHead(cause: .rotation), to: &stream)
            sink.rotate()
            logger.info("audit log continues in a new file")
            while !write(AuditHead(cause: .start, opens: true), to: &stream) {
                if queue.isEnding { return false }
                lose(queue.drop())
                queue.wait(Self.retryInterval)
            }
        } catch {
            outages.failed(error.code, error.message)
        }
        return true
    }

    /// Writes the head that opens a file which someone has emptied.
    private func open(emptied stream: inout AuditStream) -> Bool {
        write(AuditHead(cause: .start, opens: true), to: &stream)
    }

    private func write(_ head: AuditHead, to stream: inout AuditStream) -> Bool {
        while true {
            var next = stream
            next.lost = lost.count
            do throws(CryptoError) {
                let line = OutputLine(bytes: try next.head(head, at: now), isHead: true)
                let delivery = deliver([line], next, to: &stream)
                guard delivery == .emptied else { return delivery == .done }
            } catch {
                outages.failed(error.code, error.message)
                return false
            }
            guard open(emptied: &stream) else { return false }
        }
    }

    /// - Returns: whether the destination is still open.
    private func write(_ bodies: [[UInt8]], to stream: inout AuditStream) -> Bool {
        while true {
            var next = stream
            next.lost = lost.count
            do throws(CryptoError) {
                let lines = try next.lines(for: bodies, at: now)
                guard !lines.isEmpty else { return true }
                let delivery = deliver(lines, next, to: &stream)
                guard delivery == .emptied else { return delivery != .broken }
            } catch {
                lose(bodies.count)
                outages.failed(error.code, error.message)
                return true
            }
            guard open(emptied: &stream) else {
                lose(bodies.count)
                return false
            }
        }
    }

    private enum Delivery { case done, lost, broken, emptied }

    /// Writes lines, again and again until the limit.
    /// - Parameters:
    ///   - next: the chain behind the lines.
    ///   - stream: becomes `next` unless the lines are certainly not written.
    private func deliver(_ lines: [OutputLine], _ next: AuditStream, to stream: inout AuditStream) -> Delivery {
        var rest = lines[...]
        let begin = clock.monotonicTime
        let (queue, clock, limit) = (queue, clock, sink.retryLimit)
        let isOver: @Sendable () -> Bool = {
            clock.monotonicTime.since(begin) >= (queue.isEnding ? min(limit, Self.endLimit) : limit)
        }
        var pause = Self.retryInterval
        while true {
            switch sink.write(rest, until: isOver) {
            case .written:
                stream = next
                outages.succeeded()
                return .done
            case .failed(let written, let error):
                rest = rest.dropFirst(written)
                guard isOver() else {
                    if clock.monotonicTime.since(begin) >= Self.outageLimit { outages.failed(error) }
                    // A short limit is for a disk or a socket, which are attempted evenly.
                    queue.rest(limit > Self.outageLimit ? pause : Self.retryInterval)
                    pause = min(pause * 2, Self.longestRetryInterval)
                    continue
                }
                lose(rest.count { !$0.isHead })
                outages.failed(error)
                if !sink.isCertain || rest.count < lines.count { stream = next }
                return .lost
            case .broken(let error):
                lose(rest.count { !$0.isHead })
                outages.failed(error)
                return .broken
            case .emptied: return .emptied
            }
        }
    }
}
