package import MartletCore

/// A delivery of an event to a webhook that is due.
package struct DueDelivery: Sendable, Equatable {
    /// Ascending in the order in which a subject's events happened.
    package let number: Int64
    package let event: Event
    /// The number of failed attempts.
    package let attempts: Int

    package init(number: Int64, event: Event, attempts: Int) {
        self.number = number
        self.event = event
        self.attempts = attempts
    }
}

/// A delivery as operators see it.
package struct OutboxEntry: Sendable, Equatable {
    /// The state of a delivery. A delivered one leaves the outbox.
    package enum State: String, Sendable, CaseIterable {
        /// It will be attempted, for the first time or again.
        case open
        /// It failed until it was too old, and is only sent again on request.
        case dead
    }

    package let event: Event
    package let hook: String
    package let state: State
    package let attempts: Int
    /// Milliseconds since 1970.
    package let dueAt: Int64
    /// Why the last attempt failed; empty if there was none.
    package let error: String

    package init(event: Event, hook: String, state: State, attempts: Int, dueAt: Int64, error: String) {
        self.event = event
        self.hook = hook
        self.state = state
        self.attempts = attempts
        self.dueAt = dueAt
        self.error = error
    }
}

/// A page of the outbox.
package struct OutboxPage: Sendable {
    package let entries: [OutboxEntry]
    /// Where the next page starts; `nil` after the last one.
    package let next: Int64?

    package init(entries: [OutboxEntry], next: Int64?) {
        self.entries = entries
        self.next = next
    }
}

/// What a webhook has not received.
package struct OutboxBacklog: Sendable, Equatable {
    /// Deliveries that will be attempted.
    package var open = 0
    /// Deliveries that were given up.
    package var dead = 0
    /// When the event of the oldest open delivery happened; `nil` if there is none.
    package var oldest: Int64?

    package init() {}
}

/// What is delivered to webhooks: events, and for each webhook that gets them a delivery.
///
/// Times are milliseconds since 1970. Every method throws the store's error while it is unavailable.
package protocol OutboxStoring: Sendable {
    /// Sets which webhooks get which events from now on.
    func subscribe(_ subscriptions: EventSubscriptions)
    /// Signaled when this process has recorded events.
    var observers: OutboxObservers { get }

    /// The deliveries of a webhook that are due, the longest due first: for each subject only its oldest open one.
    func dueDeliveries(of hook: String, at now: Int64, limit: Int) async throws(StoreError) -> [DueDelivery]
    /// Removes deliveries, and those of their events that have no other.
    func noteDelivered(_ deliveries: [DueDelivery]) async throws(StoreError)
    /// Counts a failed attempt. The subject's later deliveries to the webhook wait for the retry, too.
    func noteFailed(_ delivery: DueDelivery, to hook: String, retryAt: Int64, reason: String) async throws(StoreError)
    /// Counts a failed attempt and gives the delivery up.
    func noteDead(_ delivery: DueDelivery, reason: String) async throws(StoreError)

    /// Lists deliveries, the oldest first.
    /// - Parameters:
    ///   - hook: only those to this webhook.
    ///   - state: only those in this state.
    ///   - start: the `next` of the page before; 0 for the first page.
    ///   - limit: the maximum number of entries of the page.
    func entries(
        to hook: String?, in state: OutboxEntry.State?, from start: Int64, limit: Int
    ) async throws(StoreError) -> OutboxPage
    /// Counts what a webhook has not received.
    func backlog(of hook: String) async throws(StoreError) -> OutboxBacklog
    /// Makes the deliveries of an event due immediately, dead ones too.
    /// - Returns: the names of its webhooks; empty if the outbox does not have the event.
    func resend(_ id: String, at now: Int64) async throws(StoreError) -> [String]
    /// Removes the oldest events beyond a maximum, `login.*` first; a limited number of them with each call.
    /// - Returns: how many events were removed.
    func trim(to maximumEvents: Int) async throws(StoreError) -> Int
    /// Drops deliveries to webhooks whose lease is not held, and those of their events that have no other delivery; a
    /// limited number of them with each call.
    /// - Parameters:
    ///   - hooks: the webhooks that are configured here, which keep theirs.
    ///   - instant: only deliveries of events that happened before it.
    /// - Returns: how many deliveries were dropped, by webhook; empty if there are no more.
    func dropDeliveries(exceptTo hooks: [String], before instant: Int64) async throws(StoreError) -> [String: Int]
}

/// Leases that instances share: of several owners one holds a lease at a time.
package protocol LeaseStoring: Sendable {
    /// Acquires a lease, or extends it if the owner holds it.
    /// - Returns: whether the owner holds it now, for `duration` from now by the store's clock.
    func acquireLease(_ name: String, owner: String, for duration: Duration) async throws(StoreError) -> Bool
    /// Releases a lease if the owner holds it.
    func releaseLease(_ name: String, owner: String) async throws(StoreError)
}

/// The tasks that wait for new events in an outbox.
package final class OutboxObservers: Sendable {
    private let wakeups = Lock<[Wakeup]>([])

    package init() {}

    /// Registers a waiter.
    package func add(_ wakeup: Wakeup) { wakeups.withLock { $0.append(wakeup) } }
    /// Removes a waiter.
    package func remove(_ wakeup: Wakeup) { wakeups.withLock { $0.removeAll { $0 === wakeup } } }

    /// Wakes all of them.
    package func signal() {
        for wakeup in wakeups.withLock({ $0 }) { wakeup.signal() }
    }
}
