import MartletAuthenticator
import MartletConfig
import MartletCore
import MartletIO
import Synchronization
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct LoopClockTests {
    /// A clock that is set by hand.
    private final class ManualClock: Sendable {
        private let seconds = Mutex<Int64>(0)
        private let nanoseconds = Mutex<Int64>(0)

        func set(unix: Int64, monotonic: Int64) {
            seconds.withLock { $0 = unix }
            nanoseconds.withLock { $0 = monotonic }
        }

        var clock: Clock {
            Clock(
                unixTime: { UnixTime(seconds: self.seconds.withLock { $0 }) },
                monotonicTime: { MonotonicTime(nanoseconds: self.nanoseconds.withLock { $0 }) })
        }
    }

    @Test func `the time changes only when it is read`() {
        let manual = ManualClock()
        manual.set(unix: 784_111_777, monotonic: 5)
        var clock = LoopClock(manual.clock)
        let text = String(decoding: clock.dateText.array, as: UTF8.self)
        let (now, unixTime) = (clock.now, clock.unixTime)
        #expect(now == 5 && unixTime == 784_111_777 && text == "Sun, 06 Nov 1994 08:49:37 GMT")
        manual.set(unix: 784_111_778, monotonic: 6)
        let unread = clock.now
        let isSetBack = clock.read()
        let next = String(decoding: clock.dateText.array, as: UTF8.self)
        let (time, milliseconds) = (clock.time, clock.unixMilliseconds)
        #expect(unread == 5 && !isSetBack && next == "Sun, 06 Nov 1994 08:49:38 GMT")
        #expect(time.monotonic == 6 && time.unix == 784_111_778 && milliseconds == 784_111_778_000)
    }

    @Test func `a clock that is set back is reported once`() {
        let manual = ManualClock()
        manual.set(unix: 100, monotonic: 0)
        var clock = LoopClock(manual.clock)
        var reports: [Bool] = []
        for second in [Int64(100), 99, 99, 100, 50] {
            manual.set(unix: second, monotonic: 0)
            reports.append(clock.read())
        }
        #expect(reports == [false, true, false, false, true])
    }
}

@Suite struct RequestIDsTests {
    private func next(_ ids: inout RequestIDs) -> String {
        ids.next()
        return String(decoding: ids.text.array, as: UTF8.self)
    }

    @Test func `an ID is the prefix and a counter`() {
        var ids = RequestIDs(prefix: 0x0123_4567_89AB_CDEF)
        let texts = [next(&ids), next(&ids)]
        #expect(texts == ["0123456789abcdef0000000000000001", "0123456789abcdef0000000000000002"])
    }

    @Test func `the counter has 64 bits`() {
        var ids = RequestIDs(prefix: 1, count: 0xFFFF_FFFE)
        let texts = [next(&ids), next(&ids), next(&ids)]
        #expect(
            texts == [
                "000000000000000100000000ffffffff", "00000000000000010000000100000000",
                "00000000000000010000000100000001",
            ])
    }
}

@Suite struct LoopScheduleTests {
    @Test func `connections are resumed in the order in which they were marked`() {
        var schedule = LoopSchedule(now: 0)
        let atFirst = !schedule.ready.isEmpty
        for index in Int32(0)..<3 {
            schedule.ready.append(EventToken(downstream: Handle(index: index, generation: 0)))
        }
        let marked = !schedule.ready.isEmpty
        let turn = schedule.ready.tokens().map(\.downstream.index)
        let afterwards = !schedule.ready.isEmpty
        #expect(!atFirst && marked && turn == [0, 1, 2] && !afterwards)
    }

    @Test func `a timer comes due after its tick`() {
        var schedule = LoopSchedule(now: 0)
        let token = EventToken(upstream: Handle(index: 3, generation: 1))
        let tick = TimerWheel.tick(for: 100_000_000)
        schedule.enter(token, at: tick)
        let early = schedule.advance(to: 100_000_000)
        let isDue = schedule.advance(to: tick * TimerWheel.tick)
        let tokens = schedule.due.map(\.token)
        schedule.clearDue()
        let again = schedule.advance(to: tick * TimerWheel.tick + 1)
        #expect(!early && isDue && tokens == [token.raw] && !again)
    }

    @Test func `a second drain can only end the first one earlier`() {
        var schedule = LoopSchedule(now: 0)
        let atFirst = schedule.isDraining
        let starts = [schedule.drain(until: 100), schedule.drain(until: 200)]
        let unchanged = schedule.drainDeadline
        let again = schedule.drain(until: 50)
        let (isDraining, deadline) = (schedule.isDraining, schedule.drainDeadline)
        #expect(!atFirst && starts == [true, false] && unchanged == 100 && !again && isDraining && deadline == 50)
        let ends = [schedule.isDrainOver(at: 49), schedule.isDrainOver(at: 50)]
        let wakes = [schedule.advance(to: 49), schedule.advance(to: 50)]
        #expect(ends == [false, true] && wakes == [false, true])
    }
}

@Suite struct ConnectionTimerTests {
    private static let tick = TimerWheel.tick

    @Test func `a later deadline needs no entry of its own`() {
        var timer = ConnectionTimer()
        let first = timer.set(10 * Self.tick, earliest: 0)
        let later = timer.set(20 * Self.tick, earliest: 0)
        #expect(first == 11 && later == nil && timer.deadline == 20 * Self.tick)
        let early = timer.fire(11, at: 11 * Self.tick)
        let next = timer.set(timer.deadline, earliest: 0)
        let due = timer.fire(21, at: 21 * Self.tick)
        #expect(early == .early && next == 21 && due == .due)
    }

    @Test func `an earlier deadline replaces the entry`() {
        var timer = ConnectionTimer()
        _ = timer.set(20 * Self.tick, earliest: 0)
        let earlier = timer.set(10 * Self.tick, earliest: 0)
        let due = timer.fire(11, at: 11 * Self.tick)
        let stale = timer.fire(21, at: 21 * Self.tick)
        #expect(earlier == 11 && due == .due && stale == .stale)
    }

    @Test func `no deadline keeps the entry for the next one`() {
        var timer = ConnectionTimer()
        _ = timer.set(10 * Self.tick, earliest: 0)
        let none = timer.set(.max, earliest: 0)
        let early = timer.fire(11, at: 11 * Self.tick)
        #expect(none == nil && early == .early && timer.scheduled == .max)
    }
}

@Suite struct AccessLogWriterTests {
    private func write(_ writer: inout AccessLogWriter) {
        let key = AccessLineBench.key()
        var request = RequestTexts()
        if !writer.isPrepared(for: key, at: key.slot) { writer.prepare(key, &request) }
        writer.append(&request, at: key.slot)
    }

    @Test func `texts are formatted again after a new configuration or format`() {
        let sink = CollectedLines()
        var writer = AccessLogWriter(sink)
        let isEmpty = writer.isEmpty
        write(&writer)
        let isWritten = !writer.isEmpty
        var configuration = AccessLogConfiguration()
        configuration.fields = [.status]
        writer.adopt(AccessPlan(configuration))
        let isHandedOver = writer.isEmpty
        write(&writer)
        sink.format = .text
        writer.reset()
        write(&writer)
        writer.adopt(.standard)
        write(&writer)
        writer.flush(now: 0, isIdle: true)
        let lines = sink.text.split(separator: "\n")
        #expect(isEmpty && isWritten && isHandedOver && lines.count == 4)
        #expect(lines[0].hasPrefix("{\"time\":0,") && lines[1] == "{\"status\":0}" && lines[2] == "status=0")
        #expect(lines[3].hasPrefix("0  "))
    }

    @Test func `lines go to the sink of a plan, and to the common one without`() {
        let (common, own) = (CollectedLines(.text), CollectedLines(.json))
        var writer = AccessLogWriter(common)
        write(&writer)
        writer.adopt(AccessPlan(AccessLogConfiguration(), sink: own))
        write(&writer)
        writer.adopt(.standard)
        write(&writer)
        writer.flush(now: 0, isIdle: true)
        let lines = [common, own].map { $0.text.split(separator: "\n").map { $0.first == "{" } }
        #expect(lines == [[false, false], [true]])
    }
}
