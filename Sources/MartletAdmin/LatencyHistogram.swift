internal import MartletCore

/// Durations of requests: counts per bucket of ``latencyBounds``; the last bucket is open-ended.
struct LatencyHistogram {
    private(set) var buckets = [Int](repeating: 0, count: latencyBounds.count + 1)
    private(set) var sumMicroseconds = 0

    init() {}

    init(_ calls: CallCounts) { (buckets, sumMicroseconds) = (calls.buckets, calls.sumMicroseconds) }

    var count: Int { buckets.reduce(0, +) }

    /// Cumulative counts per bucket, as Prometheus requires them; the last is ``count``.
    var cumulative: [Int] {
        var sum = 0
        return buckets.map { bucket in
            sum += bucket
            return sum
        }
    }

    mutating func add(_ other: [Int], sumMicroseconds more: Int) {
        for (index, count) in other.enumerated() where index < buckets.count { buckets[index] += count }
        sumMicroseconds &+= more
    }

    mutating func add(_ other: LatencyHistogram) { add(other.buckets, sumMicroseconds: other.sumMicroseconds) }

    /// A quantile in microseconds, interpolated within its bucket.
    ///
    /// - Returns: `nil` without requests; the highest bound if it lies in the open-ended bucket.
    func quantile(_ share: Double) -> Double? {
        let count = count
        guard count > 0 else { return nil }
        let rank = share * Double(count)
        var below = 0
        for (index, bucket) in buckets.enumerated() where bucket > 0 {
            guard index < latencyBounds.count else { break }
            if Double(below + bucket) >= rank {
                let lower = index == 0 ? 0 : Double(latencyBounds[index - 1])
                let upper = Double(latencyBounds[index])
                return lower + (upper - lower) * max(rank - Double(below), 0) / Double(bucket)
            }
            below += bucket
        }
        return latencyBounds.last.map(Double.init)
    }
}
