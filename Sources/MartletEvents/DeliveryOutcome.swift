/// What to do after an attempt to deliver an event.
enum DeliveryOutcome: Sendable, Equatable {
    case delivered
    /// Retry at a time, in milliseconds since 1970.
    case retry(at: Int64, reason: String)
    case dead(reason: String)

    /// - Parameters:
    ///   - attempt: the result of the attempt.
    ///   - delivery: what was sent.
    ///   - schedule: the retries of where it was sent.
    ///   - now: when the attempt ended, in milliseconds since 1970.
    ///   - random: a number from 0 to 1 that spreads the retries.
    init(
        _ attempt: DeliveryAttempt, of delivery: DueDelivery, _ schedule: RetrySchedule, at now: Int64, random: Double
    ) {
        let reason: String
        switch attempt {
        case .delivered:
            self = .delivered
            return
        case .refused(let why):
            self = .dead(reason: why)
            return
        case .failed(let why): reason = why
        }
        let attempts = delivery.attempts.addingReportingOverflow(1).partialValue
        if let retry = schedule.retry(after: attempts, of: delivery.event.time, at: now, random: random) {
            self = .retry(at: retry, reason: reason)
        } else {
            self = .dead(reason: reason)
        }
    }
}
