package import MartletCore

/// Decides which endpoint is probed when, and what the results say. It knows neither clock nor network.
package struct HealthBook: Sendable {
    private struct Entry {
        var target: HealthTarget
        var tally: HealthTally
        /// When its next probe begins; when the current one began, if there is one.
        var time: MonotonicTime
        var isInFlight = false
    }

    /// The maximum number of probes in flight; others wait.
    static let maximumInFlight = 256
    /// New endpoints are probed within a second, unless there are more of them than this.
    private static let promptly = 500
    /// With more endpoints than this, each probe has a connection of its own.
    static let maximumConnections = 1024

    private var entries: [Int: Entry] = [:]
    private var queue = ProbeQueue()
    private var inFlight = 0
    /// By upstream.
    package private(set) var counts: [String: HealthCounts] = [:]

    package init() {}

    /// Whether there is nothing to probe.
    package var isEmpty: Bool { entries.isEmpty }
    /// When the next probe can begin; `nil` while there is none, or as many are in flight as may be.
    package var nextStart: MonotonicTime? { inFlight < Self.maximumInFlight ? queue.nextDue : nil }
    /// Whether connections are kept for the next probe.
    package var keepsConnections: Bool { entries.count <= Self.maximumConnections }

    /// Replaces the targets; those that stay keep their state, and the next probe of a new one begins soon.
    package mutating func adopt(_ targets: [HealthTarget], at now: MonotonicTime) {
        var next: [Int: Entry] = [:]
        var new: [HealthTarget] = []
        for target in targets {
            guard var entry = entries[target.id] else {
                new.append(target)
                continue
            }
            entry.target = target
            if !entry.isInFlight { entry.time = min(entry.time, now + target.interval) }
            next[target.id] = entry
        }
        for (position, target) in new.enumerated() {
            let start = now + Self.delay(of: position, among: new.count, interval: target.interval)
            next[target.id] = Entry(target: target, tally: HealthTally(at: now), time: start)
        }
        entries = next
        queue = ProbeQueue()
        var counted: [String: HealthCounts] = [:]
        for (id, entry) in entries {
            if !entry.isInFlight { queue.insert(id, due: entry.time) }
            let upstream = entry.target.upstream
            var count = counted[upstream] ?? Self.reset(counts[upstream])
            count.endpoints += 1
            if !entry.tally.isHealthy { count.unhealthy += 1 }
            counted[upstream] = count
        }
        counts = counted
    }

    /// The same counters, without endpoints.
    private static func reset(_ counts: HealthCounts?) -> HealthCounts {
        var counts = counts ?? HealthCounts()
        (counts.endpoints, counts.unhealthy) = (0, 0)
        return counts
    }

    /// When the first probe of a new target begins: few are spread over a second, many over the interval.
    private static func delay(of position: Int, among count: Int, interval: Duration) -> Duration {
        let window = min(interval, max(.seconds(1), .seconds(1) * count / promptly))
        return window * position / max(count, 1)
    }

    /// Begins the next probe.
    /// - Returns: `nil` if none is due, or as many are in flight as may be.
    package mutating func begin(at now: MonotonicTime) -> (target: Int, request: ProbeRequest)? {
        guard inFlight < Self.maximumInFlight, let (id, due) = queue.popDue(at: now), var entry = entries[id] else {
            return nil
        }
        inFlight += 1
        entry.isInFlight = true
        entry.time = now
        entries[id] = entry
        if now.since(due) > entry.target.interval { counts[entry.target.upstream]?.delayed &+= 1 }
        return (id, entry.target.request)
    }

    /// Notes the result of a probe, and when the next one begins.
    /// - Parameter random: between 0 and 1; how much of the jitter shortens the interval.
    /// - Returns: the change of the endpoint's state, if there is one.
    package mutating func finish(
        _ id: Int, _ result: ProbeResult, at now: MonotonicTime, random: Double
    ) -> HealthChange? {
        inFlight -= 1
        // It is gone since.
        guard var entry = entries[id] else { return nil }
        let target = entry.target
        let jitter = min(max(random, 0), 1) * Double(target.jitter) / 100
        // A probe may take as long as an interval.
        entry.time = max(entry.time + target.interval * (1 - jitter), now)
        entry.isInFlight = false
        queue.insert(id, due: entry.time)
        let (isSuccess, reason) =
            switch result {
            case .success(let reason): (true, reason)
            case .failure(let reason): (false, reason)
            }
        let lasted = entry.tally.note(success: isSuccess, target.thresholds, at: now)
        entries[id] = entry
        count(target.upstream, isSuccess, hasChanged: lasted != nil)
        return lasted.map { HealthChange(target: id, isHealthy: isSuccess, reason: reason, lasted: $0) }
    }

    private mutating func count(_ upstream: String, _ isSuccess: Bool, hasChanged: Bool) {
        var count = counts[upstream] ?? HealthCounts()
        if isSuccess { count.successes &+= 1 } else { count.failures &+= 1 }
        if hasChanged { count.unhealthy += isSuccess ? -1 : 1 }
        counts[upstream] = count
    }
}
