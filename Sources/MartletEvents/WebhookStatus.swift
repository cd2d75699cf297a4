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

    /// The attempts that failed one after the other, and why the last one did.
    private var failures: (count: Int, reason: String) = (0, "")

    package init(hook: String) { self.hook = hook }

    /// Why nothing arrives at present; `nil` if the last attempt was confirmed, or a single one failed, which is
    /// repeated before anyone misses it.
    package var failure: String? { failures.count > 1 ? failures.reason : nil }

    /// Counts attempts that the webhook confirmed.
    mutating func countDelivered(_ count: Int) {
        delivered &+= count
        failures.count = 0
    }

    /// Counts an attempt that failed.
    mutating func countFailure(_ outcome: DeliveryOutcome) {
        switch outcome {
        case .delivered: return
        case .retry(_, let reason):
            failed &+= 1
            failures.reason = reason
        case .dead(let reason):
            dead &+= 1
            failures.reason = reason
        }
        failures.count &+= 1
    }

    /// Records whether this instance holds the lease; what another one delivers is not known here.
    mutating func note(isHolder: Bool) {
        self.isHolder = isHolder
        guard !isHolder else { return }
        backlog = nil
        failures.count = 0
    }
}
