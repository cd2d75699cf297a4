import MartletConfig
import MartletIO
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// A connection's timer and the loop's schedule, driven as the loop drives them.
private struct TimerBench: ~Copyable {
    private static let token = EventToken(downstream: Handle(index: 3, generation: 1))

    var schedule = LoopSchedule(now: 0)
    var timer = ConnectionTimer()
    /// Entries that the timer wheel got.
    private(set) var entries = 0

    mutating func set(_ deadline: Int64) {
        guard let tick = timer.set(deadline, earliest: schedule.nextTick) else { return }
        entries += 1
        schedule.enter(Self.token, at: tick)
    }

    /// - Returns: whether the deadline has come due.
    mutating func advance(to now: Int64) -> Bool {
        guard schedule.advance(to: now) else { return false }
        var isDue = false
        for entry in schedule.due where entry.token == Self.token.raw {
            switch timer.fire(entry.tick, at: now) {
            case .stale: break
            case .early: set(timer.deadline)
            case .due: isDue = true
            }
        }
        schedule.clearDue()
        return isDue
    }
}

@Suite struct LoopTimerTests {
    private static let tick = TimerWheel.tick

    /// What happens to a timer, at a tick.
    enum Step: Sendable {
        /// A deadline within the tick with this number, or none.
        case set(Int64?)
        /// Time passes until the beginning of this tick; whether the deadline comes due.
        case advance(Int64, isDue: Bool)
    }

    @Test(
        arguments: [
            // Deadlines come due one tick after theirs begins, once.
            ([.set(10), .advance(10, isDue: false), .advance(11, isDue: true), .advance(12, isDue: false)], 1),
            ([.set(0), .advance(1, isDue: true)], 1),
            ([.set(10), .advance(4000, isDue: true), .advance(9000, isDue: false)], 1),
            // A later one needs an entry only when the first has come due.
            ([.set(10), .set(20), .advance(11, isDue: false), .advance(21, isDue: true)], 2),
            ([.set(10), .set(20), .advance(20, isDue: false), .advance(21, isDue: true)], 2),
            ([.set(10), .set(20), .set(30), .set(15), .advance(11, isDue: false), .advance(16, isDue: true)], 2),
            ([.set(10), .set(10), .set(10), .advance(11, isDue: true), .advance(12, isDue: false)], 1),
            // An earlier one replaces it.
            ([.set(20), .set(10), .advance(11, isDue: true), .advance(21, isDue: false)], 2),
            ([.set(20), .set(10), .set(30), .advance(11, isDue: false), .advance(21, isDue: false)], 3),
            ([.set(20), .set(10), .set(30), .advance(31, isDue: true)], 2),
            // None stops it.
            ([.set(10), .set(nil), .advance(11, isDue: false), .advance(5000, isDue: false)], 1),
            ([.set(nil), .advance(11, isDue: false), .set(20), .advance(21, isDue: true)], 1),
            ([.set(10), .set(nil), .set(20), .advance(11, isDue: false), .advance(21, isDue: true)], 2),
            // The next one after one that came due.
            ([.set(10), .advance(11, isDue: true), .set(20), .advance(20, isDue: false)], 2),
            ([.set(10), .advance(11, isDue: true), .set(20), .advance(21, isDue: true)], 2),
            // Beyond what the wheel holds in one turn.
            ([.set(5000), .advance(2100, isDue: false), .advance(5000, isDue: false), .advance(5001, isDue: true)], 1),
        ] as [([Step], Int)])
    func `a deadline comes due once, and not before its tick is over`(_ steps: [Step], _ entries: Int) {
        var bench = TimerBench()
        for (index, step) in steps.enumerated() {
            switch step {
            case .set(let number): bench.set(number.map { $0 * Self.tick + Self.tick / 2 } ?? .max)
            case .advance(let number, let expected):
                let isDue = bench.advance(to: number * Self.tick)
                #expect(isDue == expected, "step \(index)")
            }
        }
        let count = bench.entries
        #expect(count == entries)
    }

    @Test(arguments: UInt64(1)...4)
    func `no deadline is missed or early, however it changes`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bench = TimerBench()
        var (now, deadline) = (Int64(0), Int64.max)
        var (firings, changes) = (0, 0)
        for _ in 0..<5000 {
            if Int.random(in: 0..<6, using: &random) == 0 {
                let isNone = Int.random(in: 0..<10, using: &random) == 0
                deadline = isNone ? .max : now + Int64.random(in: 0...400_000_000, using: &random)
                changes += 1
                bench.set(deadline)
            }
            now += Int64.random(in: 0...60_000_000, using: &random)
            let isDue = bench.advance(to: now)
            if isDue {
                #expect(deadline <= now, "early at \(now)")
                firings += 1
                deadline = .max
                bench.set(.max)
            } else {
                #expect(deadline == .max || TimerWheel.tick(for: deadline) > now / Self.tick, "missed at \(now)")
            }
        }
        #expect(firings > 100 && firings <= changes)
    }

    @Test func `a deadline is due at its instant, when its entry is`() {
        for (now, expected) in [(99, .early), (100, .due), (101, .due)] as [(Int64, ConnectionTimer.Firing)] {
            var timer = ConnectionTimer()
            let tick = timer.set(100, earliest: 0)
            let firing = timer.fire(tick ?? -1, at: now)
            let again = timer.fire(tick ?? -1, at: now)
            #expect(tick == 1 && firing == expected && again == .stale && timer.scheduled == .max)
        }
    }

    @Test func `a timer without an entry ignores all of them`() {
        var timer = ConnectionTimer()
        let none = timer.set(.max, earliest: 0)
        let firings = [timer.fire(0, at: .max), timer.fire(1, at: 0)]
        #expect(none == nil && firings == [.stale, .stale] && timer.deadline == .max)
    }

    @Test func `a deadline that has passed comes due at the next tick, and later ones are not lost`() {
        let tick = TimerWheel.tick
        var schedule = LoopSchedule(now: 0)
        _ = schedule.advance(to: 100 * tick)
        var timer = ConnectionTimer()
        let entry = timer.set(50 * tick, earliest: schedule.nextTick)
        schedule.enter(EventToken(downstream: Handle(index: 0, generation: 0)), at: entry ?? 0)
        _ = schedule.advance(to: 101 * tick)
        let firings = schedule.due.map { timer.fire($0.tick, at: 101 * tick) }
        let later = timer.set(200 * tick, earliest: schedule.nextTick)
        #expect(entry == 101 && firings == [.due] && later == 201)
    }

    // MARK: Waiting

    @Test(
        arguments: [
            // Ticks of entries, the time, the longest sleep, and how long the loop sleeps, in milliseconds.
            ([], 0, 1000, 1000), ([40], 0, 1000, 641), ([40], 0, 641, 641), ([40], 0, 100, 100),
            ([40, 10], 0, 1000, 161), ([40], 639_999_999, 1000, 1), ([40], 640_000_000, 1000, 1),
            ([40], 700_000_000, 1000, 0), ([1], 1, 1000, 16), ([1], 0, 0, 0),
        ] as [([Int64], Int64, Int32, Int32)])
    func `the loop sleeps until the next timer`(_ ticks: [Int64], _ now: Int64, _ idle: Int32, _ expected: Int32) {
        var schedule = LoopSchedule(now: 0)
        for tick in ticks { schedule.enter(EventToken(upstream: Handle(index: 0, generation: 0)), at: tick) }
        let wait = schedule.wait(now: now, idle: idle)
        #expect(wait == expected)
    }

    @Test func `timers that come due together are collected until they are handled`() {
        var schedule = LoopSchedule(now: 0)
        for index in Int32(0)..<3 {
            schedule.enter(EventToken(downstream: Handle(index: index, generation: 0)), at: Int64(index) + 1)
        }
        let first = schedule.advance(to: 2 * Self.tick)
        let second = schedule.advance(to: 3 * Self.tick)
        let indices = schedule.due.map { EventToken(raw: $0.token).downstream.index }
        schedule.clearDue()
        let (isEmpty, none) = (schedule.due.isEmpty, schedule.advance(to: 4 * Self.tick))
        #expect(first && second && indices == [0, 1, 2] && isEmpty && !none)
    }

    @Test func `connections that are marked while others are resumed have their turn later`() {
        var schedule = LoopSchedule(now: 0)
        schedule.ready.append(EventToken(downstream: Handle(index: 1, generation: 0)))
        let first = schedule.ready.tokens().map(\.downstream.index)
        schedule.ready.append(EventToken(downstream: Handle(index: 2, generation: 0)))
        schedule.ready.append(EventToken(downstream: Handle(index: 2, generation: 0)))
        let second = schedule.ready.tokens().map(\.downstream.index)
        let third = schedule.ready.tokens().count
        #expect(first == [1] && second == [2, 2] && third == 0)
    }

    // MARK: The drain

    @Test func `a drain wakes the loop without timers, from its deadline on`() {
        var schedule = LoopSchedule(now: 0)
        let (isDraining, isOver) = (schedule.isDraining, schedule.isDrainOver(at: .max - 1))
        let starts = schedule.drain(until: 1000)
        let wakes = [Int64(0), 999, 1000, 1001].map { schedule.isDrainOver(at: $0) }
        let advances = [schedule.advance(to: 999), schedule.advance(to: 1000), schedule.advance(to: 1001)]
        #expect(!isDraining && !isOver && starts)
        #expect(wakes == [false, false, true, true] && advances == [false, true, true])
    }
}

@Suite struct LoopTimeoutsTests {
    @Test func `each timeout has its own setting, in nanoseconds`() {
        var configured = ServerTimeouts()
        configured.requestHead = .seconds(1)
        configured.tlsHandshake = .milliseconds(2)
        configured.idle = .microseconds(3)
        configured.bodyIdle = .nanoseconds(4)
        let timeouts = LoopTimeouts(configured)
        #expect(timeouts.requestHead == 1_000_000_000 && timeouts.handshake == 2_000_000)
        #expect(timeouts.idle == 3000 && timeouts.bodyIdle == 4)
    }

    @Test func `the defaults are those of the configuration`() {
        let timeouts = LoopTimeouts(ServerTimeouts())
        let seconds = [timeouts.requestHead, timeouts.handshake, timeouts.idle, timeouts.bodyIdle].map {
            $0 / 1_000_000_000
        }
        #expect(seconds == [10, 10, 75, 30])
    }

    @Test func `a timeout can be added to the clock, whatever is configured`() {
        let century: Int64 = 3_155_760_000_000_000_000
        let rows: [(Duration, Int64)] = [
            (.zero, 0), (.seconds(-1), 0), (.seconds(Int64.max), century), (.seconds(Int64.min), 0),
            (.nanoseconds(century), century), (.nanoseconds(century + 1), century),
            (.nanoseconds(century - 1), century - 1),
        ]
        for (duration, expected) in rows {
            var configured = ServerTimeouts()
            configured.idle = duration
            #expect(LoopTimeouts(configured).idle == expected, "\(duration)")
        }
    }
}
