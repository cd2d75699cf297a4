private import Synchronization

/// Whether the process uses more memory than it may, as one thread reads it and all loops see it.
package final class MemoryPressure: Sendable {
    private let isHigh = Atomic<Bool>(false)

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
        let isOver = Self.isOver(resident: resident, limit: limit, percent: percent)
        return isHigh.exchange(isOver, ordering: .relaxed) != isOver
    }

    /// Whether that is more than the share.
    static func isOver(resident: Int?, limit: Int?, percent: Int?) -> Bool {
        guard let resident, let limit, let percent, limit > 0 else { return false }
        // Divided first: a product could overflow.
        return resident / 100 >= limit / 100 * percent / 100
    }
}
