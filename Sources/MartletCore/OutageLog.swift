/// Decides which failures of an outage are logged: each new reason once, and every ten minutes how many there were.
///
/// Every attempt is reported to it, and it has no clock. Where attempts succeed and fail in turn, it stays one outage.
@frozen package struct OutageLog: Sendable {
    /// That a failure is to be logged.
    @frozen package struct Line: Equatable, Sendable {
        /// How many failures were not logged since the last line.
        package let unlogged: Int

        package init(unlogged: Int) { self.unlogged = unlogged }

        /// The field of the line, where there is something to tell.
        package var fields: [(String, String)] { unlogged > 0 ? [("unlogged", String(unlogged))] : [] }
    }

    /// After this much time without a line, the next failure is logged whatever its reason.
    package static let interval = Duration.seconds(600)
    /// A failure this soon after a success belongs to the same outage.
    package static let shortestGap = Duration.seconds(30)
    /// Further reasons wait for the interval: a reason may have a text that is different each time.
    package static let maximumReasons = 8

    private var reasons: Set<String> = []
    private var began: MonotonicTime?
    /// When an attempt succeeded, if the last one did.
    private var ended: MonotonicTime?
    private var nextLine: MonotonicTime?
    private var unlogged = 0
    /// Whether there was a line that no end has followed.
    private var isOpen = false

    package init() {}

    /// Whether the last attempt failed.
    package var isActive: Bool { began != nil && ended == nil }

    /// Notes a failed attempt.
    /// - Parameter reason: everything that distinguishes it.
    /// - Returns: `nil` if it is not logged.
    package mutating func failed(_ reason: String, at now: MonotonicTime) -> Line? {
        if began == nil || ended.map({ now.since($0) >= Self.shortestGap }) ?? false {
            self = OutageLog()
            began = now
        }
        ended = nil
        let isNew = reasons.count < Self.maximumReasons && reasons.insert(reason).inserted
        guard isNew || nextLine.map({ now >= $0 }) ?? true else {
            unlogged &+= 1
            return nil
        }
        defer { unlogged = 0 }
        nextLine = now + Self.interval
        isOpen = true
        return Line(unlogged: unlogged)
    }

    /// Notes a successful attempt.
    /// - Returns: how long an outage lasted whose end is to be logged.
    package mutating func succeeded(at now: MonotonicTime) -> Duration? {
        guard let began, ended == nil else { return nil }
        ended = now
        guard isOpen else { return nil }
        isOpen = false
        return now.since(began)
    }
}
