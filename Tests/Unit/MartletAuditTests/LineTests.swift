import MartletCore
import MartletCrypto
import MartletJSON
import Testing

@testable import MartletAudit

@Suite struct `A line of the audit log` {
    @Test func `has its number and the hash of the line before it`() throws {
        let log = try SampleLog.closed()
        for (index, bytes) in log.lines.enumerated() {
            let line = try #require(AuditLine(bytes))
            #expect(line.sequence == Int64(index) && line.chain == log.stream.chain.name)
            #expect(line.previous == (index == 0 ? AuditChain.noHash : AuditChain.hash(log.lines[index - 1])))
        }
        let second = String(decoding: log.lines[1], as: UTF8.self)
        #expect(second.contains("\"time\":\"2027-01-15T08:00:00.000Z\",\"event\":\"login\",\"outcome\":\"success\""))
    }

    @Test(arguments: [
        "", "{}", "[]", "{\"seq\":1}", "nothing",
        "{\"seq\":-1,\"prev\":\"P\",\"chain\":\"C\",\"time\":\"t\",\"event\":\"login\"}",
        "{\"prev\":\"P\",\"seq\":1,\"chain\":\"C\",\"time\":\"t\",\"event\":\"login\"}",
        "{\"seq\":1,\"prev\":\"\",\"chain\":\"C\",\"time\":\"t\",\"event\":\"login\"}",
        "{\"seq\":1,\"prev\":\"P\",\"chain\":\"C\",\"time\":\"t\",\"event\":\"head\"}",
        "{\"seq\":1,\"prev\":\"P\",\"chain\":\"C\",\"time\":\"t\",\"event\":\"head\",\"cause\":\"start\",\"key\":\"k\",\"signature\":\"\\u0041A\"}",
        "{\"seq\":1,\"seq\":2,\"prev\":\"P\",\"chain\":\"C\",\"time\":\"t\",\"event\":\"login\"}",
    ])
    func `is not`(text: String) {
        let hash = AuditChain.noHash
        let filled = text.replacing("\"P\"", with: "\"\(hash)\"").replacing("\"C\"", with: "\"0123456789abcdef\"")
        #expect(AuditLine(Array(filled.utf8)) == nil)
    }

    @Test func `never has an address of a mailbox or a long text`() {
        var event = AuditEvent(.login)
        event.set(subject: "password:ada@example.com")
        event.set("detail", String(repeating: "a", count: 2000))
        event.set("reason", nil)
        event.set("provider", "")
        #expect(event.members["subject"]?.string?.hasPrefix("password:sha256-") == true)
        #expect(event.members["subject"]?.string?.contains("@") == false)
        #expect(event.members["detail"]?.string?.utf8.count == 512)
        #expect(!event.members.has("reason") && !event.members.has("provider"))
        event.set(subject: "usr_1")
        #expect(event.members["subject"] == "usr_1")
    }

    @Test func `is divided from others wherever the bytes are`() {
        let text = Array("first\n\nsecond line\nrest".utf8)
        for cut in 0...text.count {
            var splitter = LineSplitter(maximumBytes: 100)
            var lines: [String] = []
            for piece in [text[..<cut], text[cut...]] {
                splitter.add(piece) { lines.append(String(decoding: $0, as: UTF8.self)) }
            }
            #expect(lines == ["first", "", "second line"] && splitter.rest == Array("rest".utf8))
        }
        var splitter = LineSplitter(maximumBytes: 3)
        var lines: [[UInt8]] = []
        splitter.add(text[...]) { lines.append($0) }
        #expect(lines.map(\.count) == [4, 0, 4])
    }
}

@Suite struct `When a head is due` {
    @Test func `after 100 lines or 5 seconds, and only for lines that none covers`() {
        var schedule = HeadSchedule()
        let now = MonotonicTime(nanoseconds: 0)
        #expect(schedule.due == nil && !schedule.isDue(at: .never))
        schedule.added(at: now)
        #expect(!schedule.isDue(at: now + .milliseconds(4999)) && schedule.isDue(at: now + .seconds(5)))
        schedule.added(at: now + .seconds(4))
        #expect(schedule.isDue(at: now + .seconds(5)))
        schedule.signed()
        #expect(schedule.due == nil && schedule.unsigned == 0)
        for _ in 0..<99 { schedule.added(at: now) }
        #expect(!schedule.isDue(at: now))
        schedule.added(at: now)
        #expect(schedule.isDue(at: now))
    }

    @Test func `it stands among the lines`() throws {
        var stream = AuditStream(try AuditChain(), key: .forTests)
        let bodies = (0..<250).map { _ in AuditEvent(.login).body(at: 0) }
        let lines = try stream.lines(for: bodies, at: SampleLog.time(0))
        #expect(lines.count == 252)
        #expect(lines.indices.filter { lines[$0].isHead } == [100, 201])
        #expect(try stream.lines(for: [], at: SampleLog.time(4)).isEmpty)
        #expect(try stream.lines(for: [], at: SampleLog.time(5)).map(\.isHead) == [true])
        #expect(try stream.lines(for: [], at: SampleLog.time(60)).isEmpty)
    }
}

@Suite struct `The end of a file` {
    private func joined(_ lines: [[UInt8]]) -> [UInt8] { Array(lines.joined(separator: [0x0A])) }

    @Test func `is where the chain goes on`() throws {
        let log = try SampleLog.closed()
        let tail = try #require(AuditTail(joined(log.lines) + [0x0A]))
        #expect(tail.chain == log.stream.chain && tail.torn == nil && !tail.needsBreak)
        let cut = try #require(AuditTail(Array((joined(log.lines) + [0x0A]).dropFirst(20))))
        #expect(cut == tail)
    }

    @Test func `may be a line without its break, or a part of one`() throws {
        let log = try SampleLog.closed()
        let unbroken = try #require(AuditTail(joined(log.lines)))
        #expect(unbroken.chain == log.stream.chain && unbroken.needsBreak && unbroken.torn == nil)
        let fragment = Array("{\"seq\":8,\"pr".utf8)
        let torn = try #require(AuditTail(joined(log.lines + [fragment])))
        #expect(torn.chain == log.stream.chain && torn.needsBreak && torn.torn == AuditChain.hash(fragment))
        let closed = try #require(AuditTail(joined(log.lines + [fragment]) + [0x0A]))
        #expect(closed.torn == AuditChain.hash(fragment) && !closed.needsBreak)
    }

    @Test(arguments: ["", "\n", "something else\n", "{\"seq\":0,\"prev"])
    func `is none of a log`(text: String) {
        #expect(AuditTail(Array(text.utf8)) == nil)
    }
}
