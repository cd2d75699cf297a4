internal import MartletIO

/// The deadline of a connection, and where the timer wheel has it.
struct ConnectionTimer {
    /// What an entry of the timer wheel means for its connection.
    enum Firing: Equatable {
        /// Another entry has replaced it.
        case stale
        /// The deadline was extended.
        case early
        /// The deadline has passed.
        case due
    }

    /// The deadline of the current phase, in nanoseconds of the monotonic clock.
    var deadline = Int64.max
    /// The tick the timer wheel holds for it, `max` for none.
    private(set) var scheduled = Int64.max

    /// Sets the deadline; one that has passed already comes due at the next tick.
    /// - Parameter earliest: the next tick of the timer wheel.
    /// - Returns: the tick for which the timer wheel needs an entry; `nil` where it has one that is early enough.
    @inline(__always)
    mutating func set(_ deadline: Int64, earliest: Int64) -> Int64? {
        self.deadline = deadline
        guard deadline != .max else { return nil }
        let tick = max(TimerWheel.tick(for: deadline), earliest)
        guard tick < scheduled else { return nil }
        scheduled = tick
        return tick
    }

    /// The wheel's entry for a tick has come due.
    @inline(__always)
    mutating func fire(_ tick: Int64, at now: Int64) -> Firing {
        guard scheduled == tick else { return .stale }
        scheduled = .max
        return deadline > now ? .early : .due
    }
}
