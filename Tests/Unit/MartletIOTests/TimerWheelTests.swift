import MartletCore
import MartletIO
import MartletTesting
import Testing

@Suite struct `Timer wheel` {
    private static let tick = TimerWheel.tick

    private func due(_ wheel: inout TimerWheel, at tick: Int64) -> [UInt64] {
        var entries: [TimerWheel.Entry] = []
        wheel.advance(to: tick * Self.tick, due: &entries)
        return entries.map(\.token).sorted()
    }

    @Test func `entries come due at their tick, not before`() {
        var wheel = TimerWheel(now: MonotonicTime(nanoseconds: 0))
        wheel.enter(1, at: 5)
        wheel.enter(2, at: 6)
        #expect(due(&wheel, at: 4).isEmpty)
        #expect(due(&wheel, at: 5) == [1])
        #expect(due(&wheel, at: 100) == [2])
    }

    @Test func `a deadline has passed at its tick`() {
        for deadline in [0, 1, Self.tick - 1, Self.tick, 12_345_678_901] as [Int64] {
            #expect(TimerWheel.tick(for: deadline) * Self.tick > deadline)
        }
    }

    @Test func `entries beyond the wheel's horizon wait for their turn of the wheel`() {
        var wheel = TimerWheel(now: MonotonicTime(nanoseconds: 0))
        wheel.enter(1, at: 10_000)
        wheel.enter(2, at: 3)
        #expect(due(&wheel, at: 9_999) == [2])
        #expect(due(&wheel, at: 10_000) == [1])
    }

    @Test func `an entry for a past tick is due at the next tick`() {
        var wheel = TimerWheel(now: MonotonicTime(nanoseconds: 50 * Self.tick))
        wheel.enter(7, at: 10)
        #expect(due(&wheel, at: 51) == [7])
    }

    @Test func `an extended deadline is due at its own tick`() {
        var wheel = TimerWheel(now: MonotonicTime(nanoseconds: 0))
        var deadline = 5 * Self.tick - 1
        wheel.enter(9, at: TimerWheel.tick(for: deadline))
        // Extending the deadline does not move the entry.
        deadline = 40 * Self.tick + 1
        var firings: [Int64] = []
        for tick in 1...60 as ClosedRange<Int64> {
            for token in due(&wheel, at: tick) {
                #expect(token == 9)
                if deadline > tick * Self.tick {
                    wheel.enter(token, at: TimerWheel.tick(for: deadline))
                } else {
                    firings.append(tick)
                }
            }
        }
        #expect(firings == [41])
    }

    @Test func `a wait ends at the next entry, even if it was added last`() {
        var wheel = TimerWheel(now: MonotonicTime(nanoseconds: 0))
        #expect(wheel.wait(now: 0, idle: 1000) == 1000)
        wheel.enter(1, at: 40)
        let later = wheel.wait(now: 0, idle: 10_000)
        wheel.enter(2, at: 10)
        let sooner = wheel.wait(now: 0, idle: 10_000)
        #expect(Int64(sooner) * 1_000_000 >= 10 * Self.tick && sooner < later)
        #expect(due(&wheel, at: 10) == [2])
        #expect(wheel.wait(now: 10 * Self.tick, idle: 10_000) == Int32(30 * Self.tick / 1_000_000 + 1))
    }

    @Test func `no entry is lost or early, whatever the order`() {
        var generator = SeededGenerator(seed: 11)
        var wheel = TimerWheel(now: MonotonicTime(nanoseconds: 0))
        var waiting: [UInt64: Int64] = [:]
        var now: Int64 = 0
        for token in 0..<5000 as Range<UInt64> {
            let tick = now + Int64.random(in: 1...6000, using: &generator)
            wheel.enter(token, at: tick)
            waiting[token] = tick
            now += Int64.random(in: 0...20, using: &generator)
            for token in due(&wheel, at: now) { #expect((waiting.removeValue(forKey: token) ?? .max) <= now) }
            #expect(waiting.values.allSatisfy { $0 > now })
        }
    }
}
