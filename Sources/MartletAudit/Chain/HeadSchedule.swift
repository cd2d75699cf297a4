internal import MartletCore

/// When the next head is due: so many lines, or so much time, after the last one.
struct HeadSchedule: Sendable {
    static let lines = 100
    static let interval = Duration.seconds(5)

    /// The lines since the last head.
    private(set) var unsigned = 0
    private var since: MonotonicTime?

    mutating func added(at now: MonotonicTime) {
        unsigned += 1
        if since == nil { since = now }
    }

    mutating func signed() { (unsigned, since) = (0, nil) }

    /// When a head is due; `nil` without a line that it would cover.
    var due: MonotonicTime? {
        guard let since else { return nil }
        return unsigned >= Self.lines ? since : since + Self.interval
    }

    func isDue(at now: MonotonicTime) -> Bool { due.map { $0 <= now } ?? false }
}
