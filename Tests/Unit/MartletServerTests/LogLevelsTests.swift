import MartletCore
import MartletTesting
import Testing

@testable import MartletServer

@Suite struct LogLevelsTests {
    private func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    @Test func `a level that was set for a while ends by itself`() {
        var levels = LogLevels(configured: .info)
        levels.set(.debug, for: .seconds(60), now: at(10))
        #expect(levels.current == .debug && levels.configured == .info && levels.deadline == at(70))
        let early = levels.expire(now: MonotonicTime(nanoseconds: at(70).nanoseconds - 1))
        #expect(!early && levels.current == .debug)
        let due = levels.expire(now: at(70))
        #expect(due && levels.current == .info && levels.override == nil && levels.deadline == nil)
        let again = levels.expire(now: at(71))
        #expect(!again)
    }

    @Test func `one without an end stays until the configuration names another level`() {
        var levels = LogLevels(configured: .info)
        levels.set(.debug, for: nil, now: at(0))
        #expect(levels.deadline == nil)
        let never = levels.expire(now: MonotonicTime(nanoseconds: .max - 1))
        #expect(!never)
        levels.configure(.info)
        #expect(levels.current == .debug)
        levels.configure(.error)
        #expect(levels.current == .error && levels.override == nil)
    }

    @Test func `a configuration with another level ends one with an end, too`() {
        var levels = LogLevels(configured: .info)
        levels.set(.debug, for: .seconds(60), now: at(0))
        levels.configure(.warning)
        #expect(levels.current == .warning && levels.deadline == nil)
        let expired = levels.expire(now: at(60))
        #expect(!expired && levels.current == .warning)
    }

    @Test func `the last one that was set counts, with its own end`() {
        var levels = LogLevels(configured: .info)
        levels.set(.debug, for: .seconds(10), now: at(0))
        levels.set(.error, for: .seconds(10), now: at(5))
        let first = levels.expire(now: at(10))
        #expect(!first && levels.current == .error)
        levels.set(.debug, for: .seconds(Int.max), now: at(5))
        #expect(levels.deadline == nil && levels.current == .debug)
    }

    @Test func `the threshold follows, and returns`() async throws {
        let control = LogLevelControl(.warning, clock: .system)
        let returned = Box<LogLevel?>(nil)
        control.set(.debug, for: .milliseconds(50)) { level in returned.withLock { $0 = level } }
        #expect(control.threshold.level == .debug)
        try await eventually("its time is over") { returned.value != nil }
        #expect(returned.value == .warning && control.threshold.level == .warning)
        control.set(.debug, for: nil)
        control.configure(.error)
        #expect(control.threshold.level == .error && control.levels.override == nil)
    }
}

@Suite struct LostLinesTests {
    private func at(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }

    @Test func `a loss is announced once, and summed up once when it is over`() {
        var losses = LostLines()
        var begun: [Bool] = []
        begun.append(losses.lost(2, isWriting: false, at: at(0)))
        begun.append(losses.lost(3, isWriting: false, at: at(4000)))
        let during = losses.summary(at: at(60_000))
        losses.written()
        let after = losses.summary(at: at(61_000))
        let again = losses.summary(at: at(62_000))
        begun.append(losses.lost(1, isWriting: false, at: at(63_000)))
        #expect(during == nil && after == LostLines.Summary(lines: 5, seconds: 61) && again == nil)
        #expect(begun == [true, false, true])
    }

    @Test func `what is lost and written in turn is one loss`() {
        var losses = LostLines()
        let none = losses.lost(0, isWriting: true, at: at(0))
        #expect(!none && !losses.isOpen)
        for step in 0..<10 {
            let begins = losses.lost(1, isWriting: true, at: at(Int64(step) * 900))
            let summary = losses.summary(at: at(Int64(step) * 900 + 899))
            #expect(begins == (step == 0) && summary == nil)
        }
        #expect(losses.isOpen)
        let summary = losses.summary(at: at(9100))
        #expect(summary == LostLines.Summary(lines: 10, seconds: 9) && !losses.isOpen)
    }
}

@Suite struct ReopenableFilesTests {
    @Test func `what was removed is not opened again`() {
        let files = ReopenableFiles()
        let opened = Box<[String]>([])
        let first = files.add { opened.withLock { $0.append("first") } }
        _ = files.add { opened.withLock { $0.append("second") } }
        files.reopenAll()
        files.remove(first)
        files.reopenAll()
        #expect(opened.value.sorted() == ["first", "second", "second"])
    }
}
