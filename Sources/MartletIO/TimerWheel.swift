package import MartletCore

/// A hashed timer wheel for the deadlines of many connections; entries are checked lazily instead of being moved.
///
/// A connection stores its own deadline and has at most one entry here. When the entry's tick is reached, the owner
/// checks the deadline: if it has passed, the owner acts; if it was extended, the owner enters the connection again.
/// So extending a deadline is a single store.
@usableFromInline package struct TimerWheel: ~Copyable {
    /// The resolution in nanoseconds: deadlines fire up to one tick late, never early.
    @inlinable @inline(__always) package static var tick: Int64 { 16_000_000 }
    private static let slots = 2048

    /// The owner's token for the connection and the tick of its entry.
    package struct Entry {
        package let token: UInt64
        package let tick: Int64
    }

    /// An entry and the one entered before it in the same slot.
    private struct Link {
        var entry: Entry
        var next: Int32
    }

    private static let none: Int32 = -1

    /// The newest entry of each slot. The entries of all slots share one store, so that the first use of a slot costs no
    /// allocation: what a request costs does not depend on how many ticks pass meanwhile.
    private var newest: [Int32]
    private var links: [Link] = []
    private var unused = TimerWheel.none
    @usableFromInline var current: Int64
    private var population = 0
    /// No entry is before this tick: where the search for the next entry continues.
    private var searched: Int64

    package init(now: MonotonicTime) {
        newest = Array(repeating: TimerWheel.none, count: TimerWheel.slots)
        current = now.nanoseconds / TimerWheel.tick
        searched = current
    }

    /// The first tick at which a deadline has certainly passed.
    @inlinable @inline(__always) package static func tick(for deadline: Int64) -> Int64 { deadline / tick &+ 1 }

    /// The earliest tick at which an entry can come due.
    @inlinable @inline(__always) package var nextTick: Int64 { current &+ 1 }

    /// Adds an entry for a tick; a tick in the past is due at the next one.
    package mutating func enter(_ token: UInt64, at tick: Int64) {
        let tick = max(tick, nextTick)
        let slot = TimerWheel.slot(of: tick)
        let link = Link(entry: Entry(token: token, tick: tick), next: newest[slot])
        if unused == TimerWheel.none {
            newest[slot] = Int32(truncatingIfNeeded: links.count)
            links.append(link)
        } else {
            let index = unused
            unused = links[Int(index)].next
            links[Int(index)] = link
            newest[slot] = index
        }
        population &+= 1
        searched = min(searched, tick)
    }

    /// Advances to `now` and appends the entries that are due.
    package mutating func advance(to now: Int64, due: inout [Entry]) {
        let target = now / TimerWheel.tick
        guard population > 0 else {
            current = max(current, target)
            return
        }
        let last = min(target, current &+ Int64(TimerWheel.slots))
        while current < last {
            current &+= 1
            collect(slot: TimerWheel.slot(of: current), until: target, into: &due)
        }
        current = max(current, target)
    }

    private mutating func collect(slot: Int, until target: Int64, into due: inout [Entry]) {
        var index = newest[slot]
        guard index != TimerWheel.none else { return }
        var kept = TimerWheel.none
        while index != TimerWheel.none {
            let link = links[Int(index)]
            if link.entry.tick <= target {
                due.append(link.entry)
                population &-= 1
                links[Int(index)].next = unused
                unused = index
            } else {
                links[Int(index)].next = kept
                kept = index
            }
            index = link.next
        }
        newest[slot] = kept
    }

    @inline(__always)
    private static func slot(of tick: Int64) -> Int { Int(tick & Int64(slots - 1)) }

    /// The timeout of the poller in milliseconds: until the next tick with entries, or `idle` without entries.
    package mutating func wait(now: Int64, idle: Int32) -> Int32 {
        guard population > 0 else { return idle }
        var tick = max(current &+ 1, searched)
        let last = current &+ Int64(TimerWheel.slots)
        while tick < last, newest[TimerWheel.slot(of: tick)] == TimerWheel.none { tick &+= 1 }
        searched = tick
        let milliseconds = (tick &* TimerWheel.tick &- now) / 1_000_000 &+ 1
        return Int32(clamping: min(max(milliseconds, 0), Int64(idle)))
    }
}
