/// A count-min sketch of leaky buckets: counts recent events by key, in memory of constant size.
///
/// Each key has one cell per row, shared with all keys that hash to it, and its count is the minimum of its cells. So a
/// count is never too low: nothing is evicted, and no key can make its own count disappear. It is too high only if
/// every cell of a key is shared with a key that counts more, which takes thousands of such keys; they cannot be
/// chosen, because the hash has a secret seed.
///
/// Cells drain evenly: each holds the time at which it is empty again.
package struct LeakyCountMinSketch: Sendable {
    package static let rows = 4
    /// Cells per row.
    ///
    /// With 1,000 keys at their limit, one in 6,000 others also appears to be; with 4,000, one in 40.
    package static let width = 1 << widthBits
    private static let widthBits = 13

    /// In nanoseconds, row after row; allocated at the first count.
    private var cells: [Int64] = []

    /// Counts nothing yet, and needs no memory until it does.
    package init() {}

    /// How long a key's count takes to drain, in nanoseconds.
    package func backlog(of key: some Hashable, at now: Int64) -> Int64 {
        guard !cells.isEmpty else { return 0 }
        return max(Self.indices(of: key).map { cells[$0] }.min() ?? 0, now) &- now
    }

    /// Counts a key once more: its count takes `cost` nanoseconds longer to drain.
    package mutating func add(_ key: some Hashable, cost: Int64, at now: Int64) {
        if cells.isEmpty { cells = [Int64](repeating: .min, count: Self.rows * Self.width) }
        let indices = Self.indices(of: key)
        let minimum = indices.map { cells[$0] }.min() ?? 0
        let (sum, overflow) = max(minimum, now).addingReportingOverflow(cost)
        let end = overflow ? .max : sum
        // A cell that is higher already includes another key: raising it would only add to the error.
        for index in indices where cells[index] < end { cells[index] = end }
    }

    /// The indices of a key's cells, one per row.
    private static func indices(of key: some Hashable) -> [Int] {
        var hasher = Hasher()
        hasher.combine(key)
        let hash = UInt(bitPattern: hasher.finalize())
        return (0..<rows).map { row in
            row * width + Int((hash >> UInt(row * widthBits)) & UInt(width - 1))
        }
    }
}
