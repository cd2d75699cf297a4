/// Recovery from messages that may have been missed while the subscription was down.
///
/// Cache entries that may be stale are dropped when the store is reachable again. Before that they cannot be replaced,
/// and they expire by themselves.
struct MissedMessages {
    enum Step: Equatable { case probe, probeLater, invalidate }

    private var isProbing = false

    /// The subscription has been established again.
    /// - Returns: `nil` while a probe is running: its result covers this gap, too.
    mutating func gapDetected() -> Step? {
        guard !isProbing else { return nil }
        isProbing = true
        return .probe
    }

    mutating func probed(isAvailable: Bool) -> Step {
        guard isAvailable else { return .probeLater }
        isProbing = false
        return .invalidate
    }
}
