public import Synchronization

/// Counts what is under way at a time, over all event loops.
@usableFromInline package final class ConcurrencyCounter: Sendable {
    @usableFromInline let count = Atomic<Int>(0)

    package init() {}

    /// How many are under way.
    @inlinable package var current: Int { count.load(ordering: .relaxed) }

    /// Counts one in, unless there are `maximum` already.
    /// - Returns: whether it was counted, and has to be counted out by ``leave()``.
    @inlinable @inline(__always)
    package func enter(maximum: Int) -> Bool {
        guard count.add(1, ordering: .relaxed).newValue <= maximum else {
            leave()
            return false
        }
        return true
    }

    /// Counts one out.
    @inlinable @inline(__always)
    package func leave() { count.subtract(1, ordering: .relaxed) }
}
