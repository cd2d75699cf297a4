/// Where the events of an outbox are delivered.
package protocol EventSending: Sendable {
    /// The name in the outbox, logs and metrics.
    var name: String { get }
    var retries: RetrySchedule { get }
    /// The maximum number of events that are sent concurrently.
    var concurrency: Int { get }
    /// Sends an event; returns within a time limit of its own.
    func send(_ event: Event) async -> DeliveryAttempt
}

/// The result of sending an event once.
package enum DeliveryAttempt: Sendable, Equatable {
    case delivered
    /// It may succeed later.
    case failed(reason: String)
    /// It cannot succeed.
    case refused(reason: String)
}
