/// What is to be done about messages that may have been missed while the subscription was away.
///
/// Copies that may be out of date go when the store can be asked again: before, nothing better is to be had, and they end by
/// themselves.
struct MissedMessages {
    enum Step: Equatable { case ask, askLater, forget }

    private var isAsking = false

    /// The subscription stands again.
    /// - Returns: `nil` where the store is being asked already: that answer comes after this, too.
    mutating func noticed() -> Step? {
        guard !isAsking else { return nil }
        isAsking = true
        return .ask
    }

    /// The store has been asked.
    mutating func asked(canAnswer: Bool) -> Step {
        guard canAnswer else { return .askLater }
        isAsking = false
        return .forget
    }
}
