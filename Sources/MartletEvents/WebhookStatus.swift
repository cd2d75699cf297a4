/// The deliveries of one webhook by this instance, for metrics.
package struct WebhookStatus: Sendable {
    package let hook: String
    /// Attempts that the webhook confirmed.
    package var delivered = 0
    /// Attempts that failed and are repeated.
    package var failed = 0
    /// Attempts after which an event was given up.
    package var dead = 0
    /// Whether this instance holds the lease.
    package var isHolder = false
    /// The last count of what the webhook has not received; `nil` if this instance does not hold the lease.
    package var backlog: OutboxBacklog?

    package init(hook: String) { self.hook = hook }

    /// Counts an attempt that failed.
    mutating func countFailure(_ outcome: DeliveryOutcome) {
        if case .dead = outcome { dead &+= 1 } else { failed &+= 1 }
    }
}
