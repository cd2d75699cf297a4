internal import MartletCore

/// Limits how often something is logged.
struct LogInterval {
    private let length: Duration
    private var last: MonotonicTime?

    init(_ length: Duration) { self.length = length }

    mutating func isDue(at now: MonotonicTime) -> Bool {
        if let last, now.since(last) < length { return false }
        last = now
        return true
    }
}
