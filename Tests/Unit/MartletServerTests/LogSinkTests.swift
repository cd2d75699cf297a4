import Foundation
import Glibc
import MartletConfig
import MartletCore
import MartletTesting
import Testing

@testable import MartletServer

/// A pipe whose ends do not block.
private final class TestPipe: Sendable {
    let reader: Int32
    let writer: Int32
    private let isReaderOpen = Box(true)

    init() {
        // As the program does, a write to a pipe without a reader is an error and not the end.
        _ = signal(SIGPIPE, SIG_IGN)
        var ends: [Int32] = [-1, -1]
        _ = unsafe ends.withUnsafeMutableBufferPointer { unsafe pipe($0.baseAddress) }
        (reader, writer) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        closeReader()
        close(writer)
    }

    func closeReader() {
        isReaderOpen.withLock { isOpen in
            if isOpen { close(reader) }
            isOpen = false
        }
    }

    /// All bytes that are in it.
    func read() -> String {
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(reader, $0.baseAddress, $0.count) }
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }
}

@Suite struct LogDestinationTests {
    private func write(
        _ text: String, to destination: inout LogDestination, wait: (Int32) -> Bool = { _ in false }
    ) -> LogDestination.Outcome {
        let bytes = Array(text.utf8)
        return unsafe bytes.withUnsafeBufferPointer { unsafe destination.write($0, wait: wait) }
    }

    @Test func `lines for a pipe without a reader are counted`() {
        let pipe = TestPipe()
        pipe.closeReader()
        var destination = LogDestination(descriptor: pipe.writer)
        let outcome = write("a\nb\nc\n", to: &destination)
        #expect(outcome.lost == 3 && outcome.failure?.reason == "Broken pipe")
    }

    @Test func `a line that was torn is not continued by the next one`() {
        let pipe = TestPipe()
        var destination = LogDestination(descriptor: pipe.writer)
        // More than a pipe has room for.
        let line = String(repeating: "x", count: 999) + "\n"
        let outcome = write(String(repeating: line, count: 200), to: &destination)
        let written = pipe.read()
        let whole = written.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(outcome.lost == 200 - (whole.count - 1) && outcome.failure != nil)
        #expect(whole.last?.isEmpty == false, "the pipe's size is a multiple of the line's")
        let next = write("next\n", to: &destination)
        #expect(next == LogDestination.Outcome() && pipe.read() == "\nnext\n")
    }

    @Test func `waits for a pipe as long as it may`() {
        let pipe = TestPipe()
        var destination = LogDestination(descriptor: pipe.writer)
        let text = String(repeating: "0123456789abcde\n", count: 20_000)
        var read = ""
        let outcome = write(text, to: &destination) { _ in
            read += pipe.read()
            return true
        }
        read += pipe.read()
        #expect(outcome == LogDestination.Outcome() && read == text)
    }

    @Test func `a full disk loses the lines, and no others`() throws {
        var destination = try LogDestination(path: "/dev/full")
        let outcome = write("a\nb\n", to: &destination)
        #expect(outcome.lost == 2 && outcome.failure?.reason == "No space left on device")
    }

    @Test func `a file is made for its owner and group, appended to, and opened again`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("old\n", to: "access.log")
        var destination = try LogDestination(path: path)
        _ = write("one\n", to: &destination)
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        _ = write("two\n", to: &destination)
        try destination.reopen()
        _ = write("three\n", to: &destination)
        #expect(try String(contentsOfFile: path + ".1", encoding: .utf8) == "old\none\ntwo\n")
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "three\n")
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        let mode = (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0
        #expect(mode & ~0o640 == 0 && mode & 0o600 == 0o600)
    }

    @Test func `what cannot be opened again stays in use`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("access.log")
        var destination = try LogDestination(path: path)
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        var reason = ""
        do { try destination.reopen() } catch { reason = error.reason }
        _ = write("on\n", to: &destination)
        #expect(reason == "Is a directory")
        #expect(try String(contentsOfFile: path + ".1", encoding: .utf8) == "on\n")
    }
}

@Suite(.timeLimit(.minutes(2))) struct LogSinkTests {
    private func sink(_ descriptor: Int32, _ notices: Box<[LogSink.Notice]> = Box([])) throws -> LogSink {
        try LogSink(.json, LogDestination(descriptor: descriptor), name: "test", instanceID: "i") { _, notice in
            notices.withLock { $0.append(notice) }
        }
    }

    private func take(_ text: String, _ sink: LogSink) {
        var lines = ByteBuffer()
        lines.append(text: text)
        sink.take(&lines)
    }

    @Test func `a reader that reads nothing loses lines and stops no one`() throws {
        let pipe = TestPipe()
        let notices = Box<[LogSink.Notice]>([])
        let sink = try sink(pipe.writer, notices)
        let batch = String(repeating: String(repeating: "x", count: 1023) + "\n", count: 64)
        let count = 200
        let start = Stopwatch()
        // Twice as much as there is room for.
        for _ in 0..<count { take(batch, sink) }
        #expect(start.undisturbed < .seconds(20))
        #expect(sink.lostLines > 0 && sink.lostLines % 64 == 0)
        // What the gateway has to say has room of its own.
        let lost = sink.lostLines
        for _ in 0..<100 { sink.write(.warning, "own", []) }
        #expect(sink.lostLines == lost)
        var read = 0
        try waitUntil("what was kept is written") {
            read += pipe.read().utf8.count { $0 == 0x0A }
            return read + sink.lostLines == count * 64 + 100
        }
        try waitUntil("the loss is summed up") {
            _ = pipe.read()
            return notices.value.contains { if case .recovered = $0 { true } else { false } }
        }
        guard case .recovered(let lines, _) = notices.value.last else {
            Issue.record("\(notices.value)")
            return
        }
        #expect(lines == sink.lostLines && notices.value.count == 2)
        #expect(notices.value.first == .failed(reason: "the reader is too slow"))
        sink.stop()
    }

    @Test func `a pipe without a reader costs its lines, and is said once`() throws {
        let pipe = TestPipe()
        pipe.closeReader()
        let notices = Box<[LogSink.Notice]>([])
        let sink = try sink(pipe.writer, notices)
        for number in 1...5 {
            take("a\n", sink)
            try waitUntil("line \(number) is lost") { sink.lostLines == number }
        }
        #expect(notices.value == [.failed(reason: "Broken pipe")])
        sink.stop()
    }

    @Test func `what is enqueued before it stops is written, what comes later is counted`() throws {
        let pipe = TestPipe()
        let sink = try sink(pipe.writer)
        take("a\nb\n", sink)
        sink.stop()
        var read = ""
        try waitUntil("it is written") {
            read += pipe.read()
            return read == "a\nb\n"
        }
        take("c\n", sink)
        #expect(sink.lostLines == 1)
    }

    @Test func `numbers of events are numbers, texts that look like one are not`() throws {
        let pipe = TestPipe()
        let sink = try sink(pipe.writer)
        sink.write(
            .info, "x",
            [
                ("pid", "1916"), ("routes", "0"), ("subject", "17"), ("signal", "09"), ("limit", "api"),
                ("seconds", "-1"), ("lines", "99999999999999999999"),
            ])
        sink.flush()
        let text = pipe.read()
        let expected =
            #""level":"info","event":"x","instance_id":"i","pid":1916,"routes":0,"subject":"17","signal":"09","#
            + #""limit":"api","seconds":-1,"lines":"99999999999999999999"}"#
        #expect(text.contains(expected), "\(text)")
        sink.stop()
    }
}
