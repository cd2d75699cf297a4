private import Synchronization

/// Whether the process uses more memory than it may, as one thread reads it and all loops see it.
package final class MemoryPressure: Sendable {
    /// How often unused memory is returned to the system, in nanoseconds.
    private static let trimInterval: Int64 = 1_000_000_000

    private let isHigh = Atomic<Bool>(false)
    private let nextTrim = Atomic<Int64>(.min)

    package init() {}

    /// Whether requests are rejected.
    package var isOver: Bool { isHigh.load(ordering: .relaxed) }

    /// Records a reading.
    /// - Parameters:
    ///   - resident: the memory of the process; `nil` if unknown.
    ///   - limit: the memory that there is; `nil` if unknown.
    ///   - percent: the largest share; `nil` if any is allowed.
    /// - Returns: whether that has changed.
    package func read(resident: Int?, limit: Int?, percent: Int?) -> Bool {
        // It ends a little below, or it would change with every reading.
        let share = isHigh.load(ordering: .relaxed) ? percent.map { max($0 - 5, 1) } : percent
        let isOver = Self.isOver(resident: resident, limit: limit, percent: share)
        return isHigh.exchange(isOver, ordering: .relaxed) != isOver
    }

    /// Whether memory that the allocator keeps for later should be returned to the system now: without that the process
    /// would stay as large as it was.
    package func shouldTrim(at now: Int64) -> Bool {
        guard isOver, now >= nextTrim.load(ordering: .relaxed) else { return false }
        nextTrim.store(now &+ Self.trimInterval, ordering: .relaxed)
        return true
    }

    /// Nothing reads the memory any more: what is left of a drain is served.
    package func end() { isHigh.store(false, ordering: .relaxed) }

    /// Whether that is more than the share.
    package static func isOver(resident: Int?, limit: Int?, percent: Int?) -> Bool {
        guard let resident, let limit, let percent, limit > 0 else { return false }
        // Divided first: a product could overflow.
        return resident / 100 >= limit / 100 * percent / 100
    }
}
