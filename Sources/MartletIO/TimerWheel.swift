package import MartletCore

/// Deadlines of many connections at little cost: a hashed wheel of ticks whose entries are checked, not moved.
///
/// A connection keeps its own deadline and is entered here at most for one tick. When that tick comes, the owner looks at the
/// deadline as it is then: passed, it acts; moved on, it enters the connection again. So moving a deadline back is one store.
@usableFromInline package struct TimerWheel: ~Copyable {
    /// How fine deadlines are: up to one tick late, never early.
    @inlinable @inline(__always) package static var tick: Int64 { 16_000_000 }
    private static let slots = 2048

    /// What is entered: the owner's token for the connection and the tick it was entered for.
    package struct Entry {
        package let token: UInt64
        package let tick: Int64
    }

    private var wheel: [[Entry]]
    private var current: Int64
    private var population = 0
    /// No entry comes before this tick; where the search for the next one goes on.
    private var searched: Int64

    package init(now: MonotonicTime) {
        wheel = Array(repeating: [], count: TimerWheel.slots)
        current = now.nanoseconds / TimerWheel.tick
        searched = current
    }

    /// The tick at which a deadline has surely passed.
    @inlinable @inline(__always) package static func tick(for deadline: Int64) -> Int64 { deadline / tick &+ 1 }

    /// Enters a token for a tick; one in the past comes with the next one.
    package mutating func enter(_ token: UInt64, at tick: Int64) {
        let tick = max(tick, current &+ 1)
        wheel[Int(tick & Int64(TimerWheel.slots - 1))].append(Entry(token: token, tick: tick))
        population &+= 1
        searched = min(searched, tick)
    }

    /// Moves on to `now` and appends what has come due.
    package mutating func advance(to now: Int64, due: inout [Entry]) {
        let target = now / TimerWheel.tick
        guard population > 0 else {
            current = max(current, target)
            return
        }
        let last = min(target, current &+ Int64(TimerWheel.slots))
        while current < last {
            current &+= 1
            collect(slot: Int(current & Int64(TimerWheel.slots - 1)), until: target, into: &due)
        }
        current = max(current, target)
    }

    private mutating func collect(slot: Int, until target: Int64, into due: inout [Entry]) {
        guard !wheel[slot].isEmpty else { return }
        var kept = 0
        for index in wheel[slot].indices {
            let entry = wheel[slot][index]
            if entry.tick <= target {
                due.append(entry)
                population &-= 1
            } else {
                wheel[slot][kept] = entry
                kept += 1
            }
        }
        wheel[slot].removeLast(wheel[slot].count - kept)
    }

    /// How long a poller may wait: `idle` milliseconds when nothing is entered, else until the next tick that has entries.
    package mutating func wait(now: Int64, idle: Int32) -> Int32 {
        guard population > 0 else { return idle }
        var tick = max(current &+ 1, searched)
        let last = current &+ Int64(TimerWheel.slots)
        while tick < last, wheel[Int(tick & Int64(TimerWheel.slots - 1))].isEmpty { tick &+= 1 }
        searched = tick
        let milliseconds = (tick &* TimerWheel.tick &- now) / 1_000_000 &+ 1
        return Int32(clamping: min(max(milliseconds, 0), Int64(idle)))
    }
}
