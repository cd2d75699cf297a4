package import MartletCore

/// Drops deliveries to webhooks that were removed from the configuration.
///
/// A webhook whose lease is held is configured at another instance: during a rolling change, an instance with the
/// older configuration drops nothing of a new webhook.
package struct OutboxPruner: Sendable {
    /// How old an event is at least: an operator who removed a webhook in error has time to add it again.
    private static let age: Int64 = 86_400_000

    private let outbox: any OutboxStoring
    private let hooks: [String]
    private let clock: Clock
    private let logger: Logger

    /// - Parameter hooks: the webhooks of the configuration, and the mail server.
    package init(_ outbox: any OutboxStoring, hooks: [String], clock: Clock, logger: Logger) {
        self.outbox = outbox
        self.hooks = hooks
        self.clock = clock
        self.logger = logger
    }

    /// Drops some of them.
    /// - Returns: whether there may be more.
    package func drop() async throws(StoreError) -> Bool {
        let (instant, overflow) = clock.unixMilliseconds.subtractingReportingOverflow(OutboxPruner.age)
        guard !overflow else { return false }
        let dropped = try await outbox.dropDeliveries(exceptTo: hooks, before: instant)
        for (hook, count) in dropped.sorted(by: { $0.key < $1.key }) {
            logger.warning(
                "deliveries to a removed webhook dropped", ("webhook", hook), ("count", String(count)),
                ("code", ErrorCode.eventsDropped.rawValue))
        }
        return !dropped.isEmpty
    }
}
