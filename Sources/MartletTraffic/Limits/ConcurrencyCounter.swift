private import Synchronization

/// Counts what is under way at a time, over all event loops.
package final class ConcurrencyCounter: Sendable {
    private let count = Atomic<Int>(0)

    package init() {}

    /// How many are under way.
    package var current: Int { count.load(ordering: .relaxed) }

    /// Counts one in, unless there are `maximum` already.
    /// - Returns: whether it was counted, and has to be counted out by ``leave()``.
    package func enter(maximum: Int) -> Bool {
        guard count.add(1, ordering: .relaxed).newValue <= maximum else {
            leave()
            return false
        }
        return true
    }

    /// Counts one out.
    package func leave() { count.subtract(1, ordering: .relaxed) }
}
