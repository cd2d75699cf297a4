internal import MartletDecisions
internal import MartletResponder

/// Statuses and durations of requests, by route.
struct RouteCounters: ~Copyable {
    /// The bounds of the reported histogram: read for every request, and a constant of another module would be read
    /// through a call.
    static let bounds: [Int] = [
        100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
        5_000_000, 10_000_000,
    ]
    /// A counter for every possible status.
    private static let statusLimit = 600
    private static let buckets = bounds.count + 1

    private(set) var names: [String] = ["-"]
    /// The same as bytes, for the log.
    private(set) var texts: [[UInt8]] = [Array("-".utf8)]
    private var slots: [String: RouteSlot] = [:]
    /// For each slot that of the route's checks, which is its own if it counts checks; none before the first check.
    private var checks: [RouteSlot?] = [nil]
    /// For each route of the configuration, its slot.
    private(set) var configured: [RouteSlot] = []
    private var statuses = FlatList(repeating: 0, count: RouteCounters.statusLimit)
    private var histogram = FlatList(repeating: 0, count: RouteCounters.buckets)
    private var sums = FlatList(repeating: 0, count: 1)

    /// Assigns every route of a configuration its slot.
    mutating func assignSlots(toRoutes names: [String]) {
        configured.removeAll()
        for name in names { configured.append(slot(of: name)) }
    }

    /// The slot of a route's counters; stable across reloads because it is assigned by name.
    private mutating func slot(of route: String) -> RouteSlot {
        if let known = slots[route] { return known }
        let slot = addSlot(named: route)
        slots[route] = slot
        return slot
    }

    /// The slot of the checks of a proxy that concern a route; the slot of checks has itself.
    mutating func checkSlot(of route: RouteSlot) -> RouteSlot {
        let index = Int(route.rawValue)
        if let known = checks[index] { return known }
        let slot = addSlot(named: names[index])
        checks[index] = slot
        checks[Int(slot.rawValue)] = slot
        return slot
    }

    private mutating func addSlot(named route: String) -> RouteSlot {
        let slot = RouteSlot(rawValue: Int32(names.count))
        names.append(route)
        texts.append(Array(route.utf8))
        checks.append(nil)
        statuses.append(0, times: RouteCounters.statusLimit)
        histogram.append(0, times: RouteCounters.buckets)
        sums.append(0)
        return slot
    }

    /// Counts one finished request.
    /// - Returns: the bucket of its duration.
    @inline(__always)
    @discardableResult
    mutating func count(_ route: RouteSlot, status: Int, microseconds: Int) -> Int {
        let slot = Int(route.rawValue)
        statuses[slot &* RouteCounters.statusLimit &+ min(max(status, 0), RouteCounters.statusLimit &- 1)] &+= 1
        var bucket = 0
        while bucket < RouteCounters.bounds.count, microseconds > RouteCounters.bounds[bucket] { bucket &+= 1 }
        histogram[slot &* RouteCounters.buckets &+ bucket] &+= 1
        sums[slot] &+= microseconds
        return bucket
    }

    /// The bucket of a duration in the histogram.
    static func bucket(of microseconds: Int) -> Int { bounds.firstIndex { microseconds <= $0 } ?? bounds.count }

    /// Adds what was counted to a report.
    func add(to report: inout LoopReport) {
        for (slot, name) in names.enumerated() {
            let first = slot * RouteCounters.statusLimit
            let isCheck = checks[slot]?.rawValue == Int32(slot)
            for status in 0..<RouteCounters.statusLimit where statuses[first + status] > 0 {
                report.requests.append(
                    .init(route: name, status: status, isCheck: isCheck, count: statuses[first + status]))
            }
            var row: [Int] = []
            for bucket in slot * RouteCounters.buckets..<(slot + 1) * RouteCounters.buckets {
                row.append(histogram[bucket])
            }
            if row.contains(where: { $0 > 0 }) { report.latency.append((name, row, sums[slot])) }
        }
    }
}
