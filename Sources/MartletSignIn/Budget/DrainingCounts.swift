/// How often something happened lately, by key, in memory that does not grow with the number of keys.
///
/// A count-min table: each key has one cell in each row, shared with whatever other keys fall into it, and its count is
/// the least of its cells. So a count is never too low, whatever other keys do: nothing is evicted, and nobody can
/// make their own count forgotten. It is too high only where every cell of a key is shared with a key that counts more,
/// which takes thousands of such keys: they cannot be chosen, because the hash has a secret seed.
///
/// Cells drain evenly: each holds the moment at which it is empty again.
struct DrainingCounts: Sendable {
    static let rows = 4
    /// Cells in a row.
    ///
    /// A thousand keys at their limit make one in six thousand others look so, four thousand one in forty.
    static let width = 1 << widthBits
    private static let widthBits = 13

    /// In nanoseconds, row behind row; made with the first count.
    private var cells: [Int64] = []

    /// How long it takes until nothing is left of a key's count.
    func backlog(of key: some Hashable, at now: Int64) -> Int64 {
        guard !cells.isEmpty else { return 0 }
        return max(Self.places(of: key).map { cells[$0] }.min() ?? 0, now) &- now
    }

    /// Counts a key once more: it takes `cost` nanoseconds longer until nothing is left.
    mutating func add(_ key: some Hashable, cost: Int64, at now: Int64) {
        if cells.isEmpty { cells = [Int64](repeating: .min, count: Self.rows * Self.width) }
        let places = Self.places(of: key)
        let least = places.map { cells[$0] }.min() ?? 0
        let (sum, overflow) = max(least, now).addingReportingOverflow(cost)
        let end = overflow ? .max : sum
        // A cell that is ahead already counts for another key too: raising it would count this one there for nothing.
        for place in places where cells[place] < end { cells[place] = end }
    }

    /// The indices of a key's cells, one in each row.
    private static func places(of key: some Hashable) -> [Int] {
        var hasher = Hasher()
        hasher.combine(key)
        let hash = UInt(bitPattern: hasher.finalize())
        return (0..<rows).map { row in
            row * width + Int((hash >> UInt(row * widthBits)) & UInt(width - 1))
        }
    }
}
