import Foundation
import MartletCore
import MartletTesting
import Synchronization
import Testing

@testable import MartletAudit

@Suite struct `The writer of an audit log` {
    private func writer(_ sink: some AuditSink, total: LostEvents = LostEvents()) throws -> AuditWriter {
        let writer = try AuditWriter(
            sink, key: .forTests, waits: false, total: total, clock: .system, logger: .silent)
        writer.run()
        return writer
    }

    private func event(_ subject: String = "usr_1") -> [UInt8] {
        var event = AuditEvent(.login)
        event.set(subject: subject)
        return event.body(at: Clock.system.unixMilliseconds)
    }

    private func causes(_ lines: [[UInt8]]) -> [HeadCause?] {
        lines.withoutPeriodicHeads.map { AuditLine($0)?.head?.cause }
    }

    @Test func `begins and ends with a head`() async throws {
        let sink = MemorySink()
        let writer = try writer(sink)
        writer.add(event())
        await writer.end(within: .seconds(10))
        #expect(causes(sink.lines) == [.start, nil, .end])
        #expect(result(sink.lines).isClosed && sink.state.withLock { $0.isClosed })
    }

    @Test func `goes on after a destination was full, and says what is lost`() async throws {
        let (sink, total) = (MemorySink(), LostEvents())
        let writer = try writer(sink, total: total)
        try await eventually("there are 1 lines") { sink.lines.withoutPeriodicHeads.count == 1 }
        sink.state.withLock { $0.failures = 1 }
        writer.add(event("usr_1"))
        try await eventually("an event is lost") { total.count == 1 }
        writer.add(event("usr_2"))
        await writer.end(within: .seconds(10))
        let found = result(sink.lines)
        #expect(found.isGood && found.lost == 1 && sink.lines.withoutPeriodicHeads.count == 3)
    }

    @Test func `attempts lines again until the limit`() async throws {
        let (sink, total) = (MemorySink(failures: 2, retryLimit: .seconds(10)), LostEvents())
        let writer = try writer(sink, total: total)
        writer.add(event())
        try await eventually("there are 2 lines") { sink.lines.withoutPeriodicHeads.count == 2 }
        await writer.end(within: .seconds(10))
        #expect(result(sink.lines).isGood && total.count == 0)
    }

    @Test func `shows a gap where lines may or may not have arrived`() async throws {
        let (sink, total) = (MemorySink(isCertain: false), LostEvents())
        let writer = try writer(sink, total: total)
        try await eventually("there are 1 lines") { sink.lines.withoutPeriodicHeads.count == 1 }
        sink.state.withLock { $0.failures = 1 }
        writer.add(event("usr_1"))
        try await eventually("an event is lost") { total.count == 1 }
        writer.add(event("usr_2"))
        await writer.end(within: .seconds(10))
        #expect(result(sink.lines).finding?.problem == .removed)
    }

    @Test func `goes on in a new file with the head that carries the last hash`() async throws {
        let sink = MemorySink()
        let writer = try writer(sink)
        writer.add(event())
        try await eventually("there are 2 lines") { sink.lines.withoutPeriodicHeads.count == 2 }
        sink.state.withLock { $0.isMoved = true }
        writer.reopen()
        try await eventually("there are 4 lines") { sink.lines.withoutPeriodicHeads.count == 4 }
        await writer.end(within: .seconds(10))
        #expect(causes(sink.lines) == [.start, nil, .rotation, .start, .end])
        let second = try #require(sink.lines.lastIndex { AuditLine($0)?.head?.opens == true })
        #expect(AuditLine(sink.lines[second])?.previous == AuditChain.hash(sink.lines[second - 1]))
        #expect(result(Array(sink.lines[..<second]), Array(sink.lines[second...])).isGood)
    }

    @Test func `signs with a new key from the head on that says so`() async throws {
        let (sink, other) = (MemorySink(), try AuditKey())
        let writer = try writer(sink)
        try await eventually("there are 1 lines") { sink.lines.withoutPeriodicHeads.count == 1 }
        writer.replace(other)
        try await eventually("there are 2 lines") { sink.lines.withoutPeriodicHeads.count == 2 }
        await writer.end(within: .seconds(10))
        #expect(causes(sink.lines) == [.start, .key, .end])
        #expect(result(sink.lines, trusting: [.forTests, other]).isGood)
    }

    @Test func `loses what comes faster than it is written, and never waits`() async throws {
        let (sink, total) = (StuckSink(), LostEvents())
        let writer = try writer(sink, total: total)
        for _ in 0..<AuditQueue.maximumEvents + 500 { writer.add(event()) }
        #expect(total.count >= 400)
        sink.gate.open()
        await writer.end(within: .seconds(30))
    }

    @Test func `gives up a destination that hangs at the end`() async throws {
        let (sink, total) = (StuckSink(), LostEvents())
        let writer = try writer(sink, total: total)
        writer.add(event())
        await writer.end(within: .milliseconds(200))
        #expect(total.count == 1)
        sink.gate.open()
    }
}

/// A destination that hangs.
private final class StuckSink: AuditSink {
    let name = "stuck"
    let retryLimit = Duration.zero
    let isCertain = true
    let gate = Gate()

    func open() throws(AuditError) -> AuditStart { .new(torn: nil) }

    func write(_ lines: ArraySlice<OutputLine>, until isOver: @Sendable () -> Bool) -> WriteOutcome {
        gate.block()
        return .written
    }

    func close() {}
}

@Suite struct `The file of an audit log` {
    private func log() -> AuditLog { AuditLog(clock: .system, logger: .silent) }

    private func plan(_ path: String, key: AuditKey = .forTests) -> AuditLog.Plan {
        var plan = AuditLog.Plan(key: key)
        plan.file = path
        return plan
    }

    private func lines(_ path: String) throws -> [[UInt8]] {
        var splitter = LineSplitter(maximumBytes: AuditLine.maximumBytes)
        var lines: [[UInt8]] = []
        splitter.add(try bytes(path)[...]) { lines.append($0) }
        #expect(splitter.rest == nil)
        return lines
    }

    private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

    private func append(_ text: String, to path: String) throws {
        let before = (try? bytes(path)) ?? []
        try Data(before + Array(text.utf8)).write(to: URL(fileURLWithPath: path))
    }

    private func session(_ path: String, events: Int = 1) async throws {
        let log = log()
        log.adopt(try log.prepare(plan(path)))
        for _ in 0..<events { log.record(AuditEvent(.login)) }
        await log.end(within: .seconds(20))
        #expect(log.lost == 0)
    }

    @Test func `goes on where the process before has ended`() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let path = folder.file("audit.log")
        try await session(path, events: 3)
        try await session(path, events: 150)
        let found = result(try lines(path))
        #expect(found.isGood && found.isClosed && found.lines - found.heads == 153)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test func `closes off a line that was not written to its end`() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let path = folder.file("audit.log")
        try await session(path)
        try append("{\"seq\":3,\"prev\":\"00", to: path)
        try await session(path)
        let found = result(try lines(path))
        #expect(found.isGood && found.torn == 1)
        let other = try TemporaryFolder()
        defer { withExtendedLifetime(other) {} }
        let first = other.file("audit.log")
        try append("{\"seq\":0,\"prev\":\"00", to: first)
        try await session(first)
        let opened = result(try lines(first))
        #expect(opened.isGood && opened.torn == 1, "\(opened)")
    }

    @Test func `has one writer at a time`() async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let path = folder.file("audit.log")
        let (first, second) = (log(), log())
        first.adopt(try first.prepare(plan(path)))
        #expect(throws: AuditError(.auditFileInUse, "")) { try second.prepare(plan(path)) }
        // A successor waits until the file is free, and has lost nothing then.
        second.adopt(try second.prepare(plan(path), waits: true))
        second.record(AuditEvent(.reload))
        first.record(AuditEvent(.login))
        await first.end(within: .seconds(20))
        try await waitForLines(5, path)
        await second.end(within: .seconds(20))
        let found = result(try lines(path))
        #expect(found.isGood && found.lines - found.heads == 2 && second.lost == 0)
    }

    @Test func `is refused if it is something else`() throws {
        let folder = try TemporaryFolder()
        try folder.write("root:x:0:0\n", to: "passwd")
        #expect(throws: AuditError(.auditFileForeign, "")) { try log().prepare(plan(folder.file("passwd"))) }
        #expect(throws: AuditError(.auditFileUnavailable, "")) { try log().prepare(plan(folder.file("no/where"))) }
    }

    @Test func `may be moved, removed and emptied`() async throws {
        let folder = try TemporaryFolder()
        let (path, old) = (folder.file("audit.log"), folder.file("audit.log.1"))
        // It notices by itself within seconds that a file was moved. No time passes, so that it does not here.
        let now = Clock.system.monotonicTime
        let clock = Clock(unixTime: { Clock.system.unixTime }, monotonicTime: { now })
        let log = AuditLog(clock: clock, logger: .silent)
        log.adopt(try log.prepare(plan(path)))
        log.record(AuditEvent(.login))
        try await waitForLines(2, path)
        try FileManager.default.moveItem(atPath: path, toPath: old)
        log.record(AuditEvent(.login))
        try await waitForLines(3, old)
        log.reopen()
        try await waitForLines(1, path)
        log.record(AuditEvent(.link))
        try await waitForLines(2, path)
        #expect(result(try lines(old), try lines(path)).isGood)
        // Without anything having been moved, nothing happens.
        log.reopen()
        try FileHandle(forWritingTo: URL(fileURLWithPath: path)).truncate(atOffset: 0)
        log.reopen()
        try await waitForLines(1, path)
        log.record(AuditEvent(.unlink))
        await log.end(within: .seconds(20))
        #expect(result(try lines(path)).isGood)
        #expect(result(try lines(old), try lines(path)).finding?.problem == .notContinued)
        #expect(log.lost == 0)
    }

    @Test(arguments: [0, 1, 100])
    func `opens a file that was emptied with a head, whatever the next line is`(events: Int) async throws {
        let folder = try TemporaryFolder()
        let (path, old) = (folder.file("audit.log"), folder.file("audit.log.1"))
        let log = log()
        log.adopt(try log.prepare(plan(path)))
        log.record(AuditEvent(.login))
        try await waitForLines(2, path)
        try FileManager.default.copyItem(atPath: path, toPath: old)
        try FileHandle(forWritingTo: URL(fileURLWithPath: path)).truncate(atOffset: 0)
        for _ in 0..<events { log.record(AuditEvent(.login)) }
        await log.end(within: .seconds(20))
        let found = result(try lines(old), try lines(path))
        #expect(found.isGood && found.isClosed && found.lines - found.heads == 1 + events, "\(found)")
        #expect(AuditLine(try #require(try lines(path).first))?.head?.opens == true)
        #expect(log.lost == 0)
    }

    @Test func `loses events on a full disk, and nothing waits for it`() async throws {
        let log = log()
        log.adopt(try log.prepare(plan("/dev/full")))
        for _ in 0..<20 { log.record(AuditEvent(.login)) }
        try await eventually("all are lost") { log.lost == 20 }
        await log.end(within: .seconds(5))
    }

    @Test func `changes with a reload`() async throws {
        let folder = try TemporaryFolder()
        let (first, second) = (folder.file("a.log"), folder.file("b.log"))
        let (log, other) = (log(), try AuditKey())
        log.adopt(try log.prepare(plan(first)))
        log.record(AuditEvent(.login))
        log.adopt(try log.prepare(plan(first, key: other)))
        log.record(AuditEvent(.login))
        log.adopt(try log.prepare(plan(second, key: other)))
        log.record(AuditEvent(.link))
        try await waitForLines(2, second)
        log.adopt(try log.prepare(nil))
        log.record(AuditEvent(.unlink))
        await log.end(within: .seconds(20))
        let found = result(try lines(first), trusting: [.forTests, other])
        #expect(found.isGood && found.isClosed && found.keys.count == 2)
        let next = result(try lines(second), trusting: [other])
        #expect(next.isGood && next.lines - next.heads == 1)
    }

    private func waitForLines(_ count: Int, _ path: String) async throws {
        try await eventually("\(path) has \(count) lines") {
            (try? lines(path).withoutPeriodicHeads.count) == count
        }
    }
}
