private import CLinux
package import MartletConfig
package import MartletCore
package import MartletProxy
private import Synchronization

/// Writes every log line of the process to a descriptor on its own thread, so that logging never blocks.
///
/// If the reader of the log is slow, lines beyond a limit are dropped and counted.
package final class LogSink: AccessLogging, LogWriting {
    private struct State: ~Copyable {
        var pending = ByteBuffer()
        var isWriting = false
        var isStopped = false
    }

    /// The maximum number of buffered bytes.
    private static let limit = 4 * 1024 * 1024
    /// The memory of larger batches is freed after writing.
    private static let retainedBytes = 256 * 1024

    /// The current format.
    package var format: AccessFormat { isText.load(ordering: .relaxed) ? .text : .json }
    private let isText: Atomic<Bool>
    /// The name of this process in every line; none if empty.
    package let instanceID: String
    private let descriptor: Int32
    private let state = Mutex(State())
    private let dropped = Atomic<Int>(0)
    private let wake: Int32
    /// Every sink of the process; their threads retain them.
    private static let all = Mutex<[LogSink]>([])

    /// - Parameters:
    ///   - format: `auto` is text on a terminal, JSON lines elsewhere.
    ///   - descriptor: the descriptor to write to.
    ///   - instanceID: the name of this process in every line; none if empty.
    package init(
        _ format: LogConfiguration.Format, descriptor: Int32, instanceID: String = ""
    ) throws(SystemThreadError) {
        self.descriptor = descriptor
        self.instanceID = instanceID
        isText = Atomic(LogSink.isText(format, descriptor))
        wake = eventfd(0, Int32(EFD_CLOEXEC))
        _ = try SystemThread(name: "martlet-log") { [self] in work() }
        LogSink.all.withLock { $0.append(self) }
    }

    deinit { close(wake) }

    /// Switches to another format.
    ///
    /// - Returns: whether it differs from the current one.
    func setFormat(_ format: LogConfiguration.Format) -> Bool {
        let next = LogSink.isText(format, descriptor)
        return isText.exchange(next, ordering: .relaxed) != next
    }

    private static func isText(_ format: LogConfiguration.Format, _ descriptor: Int32) -> Bool {
        switch format {
        case .text: true
        case .json: false
        case .auto: isatty(descriptor) == 1
        }
    }

    /// The number of batches of lines that were dropped because the reader was slow.
    package var droppedBatches: Int { dropped.load(ordering: .relaxed) }

    /// Enqueues whole lines of access records; swaps the buffers if the queue is empty.
    package func take(_ lines: inout ByteBuffer) {
        let isFirst = add(&lines)
        lines.removeAll()
        if isFirst { signal() }
    }

    private func add(_ lines: inout ByteBuffer) -> Bool {
        // A closure cannot consume an inout parameter, only a local variable.
        var own = lines.take()
        let isFirst = state.withLock { state in
            guard state.pending.count + own.count <= LogSink.limit else {
                dropped.add(1, ordering: .relaxed)
                return false
            }
            guard state.pending.isEmpty else {
                unsafe state.pending.append(own.bytes)
                return false
            }
            swap(&state.pending, &own)
            return true
        }
        lines = own
        return isFirst
    }

    /// Enqueues one event.
    package func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)]) {
        let time = Clock.system.unixTime.seconds
        var line = ByteBuffer(capacity: 256)
        switch format {
        case .json:
            line.append(text: "{\"time\":\(time),\"level\":\"\(level.name)\",\"event\":\"\(LogSink.escape(event))\"")
            if !instanceID.isEmpty { line.append(text: ",\"instance_id\":\"\(instanceID)\"") }
            for (name, value) in fields { line.append(text: ",\"\(name)\":\"\(LogSink.escape(value))\"") }
            line.append(text: "}\n")
        case .text:
            line.append(text: "\(time) \(level.name) \(event)")
            for (name, value) in fields { line.append(text: " \(name)=\(LogSink.escape(value))") }
            if !instanceID.isEmpty { line.append(text: " instance_id=\(instanceID)") }
            line.append(text: "\n")
        }
        take(&line)
    }

    /// Waits until every enqueued line is written, at most for the timeout; called before the process exits.
    package func flush(timeout: Duration = .seconds(1)) {
        let deadline = Clock.system.monotonicTime + timeout
        signal()
        while !state.withLock({ $0.pending.isEmpty && !$0.isWriting }), Clock.system.monotonicTime < deadline {
            usleep(1000)
        }
    }

    /// Flushes every sink.
    package static func flushAll(timeout: Duration) {
        for sink in all.withLock({ $0 }) { sink.flush(timeout: timeout) }
    }

    private func signal() {
        var one: UInt64 = 1
        _ = unsafe CLinux.write(wake, &one, 8)
    }

    private func work() {
        var batch = ByteBuffer()
        while true {
            var count: UInt64 = 0
            _ = unsafe read(wake, &count, 8)
            batch = exchange(batch)
            writeAll(batch)
            if batch.count > LogSink.retainedBytes { batch.release() }
            batch.removeAll()
            state.withLock { $0.isWriting = false }
        }
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

    private func writeAll(_ bytes: borrowing ByteBuffer) {
        var offset = 0
        while offset < bytes.count {
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes.bytes[offset...])
            let written = unsafe CLinux.write(descriptor, rest.baseAddress, rest.count)
            if written > 0 {
                offset += written
            } else if martlet_errno() == EAGAIN {
                usleep(1000)
            } else if martlet_errno() != EINTR {
                return
            }
        }
    }

    /// Escapes a text for a JSON string and for one line.
    private static func escape(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x22 || $0 == 0x5C || $0 < 0x20 }) else { return text }
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": escaped += "\\\(scalar)"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
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
