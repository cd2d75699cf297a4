package import MartletCore

/// The tasks that wait for new events in an outbox.
package final class OutboxObservers: Sendable {
    private let wakeups = Lock<[ObjectIdentifier: Wakeup]>([:])

    package init() {}

    /// Registers a waiter.
    package func add(_ wakeup: Wakeup) { wakeups.withLock { $0[ObjectIdentifier(wakeup)] = wakeup } }
    /// Removes a waiter.
    package func remove(_ wakeup: Wakeup) { wakeups.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(wakeup)) } }

    /// Wakes all of them.
    package func signal() {
        for wakeup in wakeups.withLock({ Array($0.values) }) { wakeup.signal() }
    }
}
