package import MartletCore
package import MartletEvents
internal import MartletJSON

extension AccountStore: OutboxStoring {
    /// The maximum number of events removed by one call.
    private static let removedAtOnce: Int64 = 10_000
    /// The maximum number of deliveries to one webhook dropped by one call.
    private static let droppedAtOnce: Int64 = 500

    package var observers: OutboxObservers { recorder.observers }

    /// Sets which webhooks get which events from now on.
    package func subscribe(_ subscriptions: EventSubscriptions) { recorder.subscribe(subscriptions) }

    /// The deliveries of a webhook that are due.
    package func dueDeliveries(of hook: String, at now: Int64, limit: Int) async throws(StoreError) -> [DueDelivery] {
        let query = Query(OutboxStatement.due, .text(hook), .integer(now), .integer(Int64(limit)))
        return try await StoreError.mapping(await engine.rows(query, AccountStore.delivery))
    }

    /// Removes deliveries.
    package func noteDelivered(_ deliveries: [DueDelivery]) async throws(StoreError) {
        try await remove(deliveries.map { (number: $0.number, event: $0.event.id) })
    }

    private func remove(_ deliveries: [(number: Int64, event: String)]) async throws(StoreError) {
        // In one order, so that two webhooks that confirm the same events do not wait for each other.
        let ordered = deliveries.sorted { $0.event < $1.event }
        try await change(
            ordered.flatMap { delivery in
                [
                    Query(OutboxStatement.lockEvent, .text(delivery.event)),
                    Query(OutboxStatement.remove, .integer(delivery.number)),
                    Query(OutboxStatement.removeEvent, .text(delivery.event)),
                ]
            })
    }

    /// Counts a failed attempt.
    package func noteFailed(
        _ delivery: DueDelivery, to hook: String, retryAt: Int64, reason: String
    ) async throws(StoreError) {
        try await change([
            Query(
                OutboxStatement.fail, .integer(delivery.number), .integer(retryAt), .text(AccountStore.storable(reason))
            ),
            Query(OutboxStatement.postpone, .text(hook), .text(delivery.event.subject), .integer(retryAt)),
        ])
    }

    /// Gives a delivery up.
    package func noteDead(_ delivery: DueDelivery, reason: String) async throws(StoreError) {
        try await change([
            Query(OutboxStatement.bury, .integer(delivery.number), .text(AccountStore.storable(reason)))
        ])
    }

    /// Lists deliveries, the oldest first.
    package func entries(
        to hook: String?, in state: OutboxEntry.State?, from start: Int64, limit: Int
    ) async throws(StoreError) -> OutboxPage {
        let number: Int64 =
            switch state {
            case nil: -1
            case .open: 0
            case .dead: 1
            }
        let query = Query(
            OutboxStatement.list, .integer(start), .text(hook ?? ""), .integer(number), .integer(Int64(limit)))
        return try await StoreError.mapping(
            await engine.read(
                ReadOperation(queries: [query]) { results throws(AccountError) in
                    let next = results[0].count >= limit ? try results[0].last?.integer(0) : nil
                    return OutboxPage(entries: try results[0].map(AccountStore.entry), next: next)
                }))
    }

    /// Counts what a webhook has not received.
    package func backlog(of hook: String) async throws(StoreError) -> OutboxBacklog {
        let queries = [Query(OutboxStatement.states, .text(hook)), Query(OutboxStatement.oldest, .text(hook))]
        return try await StoreError.mapping(
            await engine.read(
                ReadOperation(queries: queries) { results throws(AccountError) in
                    var backlog = OutboxBacklog()
                    for row in results[0] {
                        let count = Int(clamping: try row.integer(1))
                        if try row.integer(0) == 0 { backlog.open = count } else { backlog.dead = count }
                    }
                    if let row = results[1].first { backlog.oldest = try row.integer(0) }
                    return backlog
                }))
    }

    /// Makes the deliveries of an event due immediately.
    package func resend(_ id: String, at now: Int64) async throws(StoreError) -> [String] {
        let queries = [OutboxStatement.resend, OutboxStatement.expedite].map { Query($0, .text(id), .integer(now)) }
        let hooks = try await StoreError.mapping(
            await engine.transact(
                .commit(queries) { results throws(AccountError) in
                    try results[0].map { row throws(AccountError) in try row.text(0) }
                }))
        if !hooks.isEmpty { observers.signal() }
        return hooks
    }

    /// Removes the oldest events beyond a maximum.
    package func trim(to maximumEvents: Int) async throws(StoreError) -> Int {
        let limit = Int64(clamping: maximumEvents)
        let most = limit.addingReportingOverflow(AccountStore.removedAtOnce).partialValue
        let excess = try await StoreError.mapping(
            await engine.read(
                ReadOperation(queries: [Query(OutboxStatement.count, .integer(most))]) { results throws(AccountError) in
                    guard let row = results[0].first else { throw .corrupt }
                    return try row.integer(0).subtractingReportingOverflow(limit).partialValue
                }))
        guard excess > 0 else { return 0 }
        let removal = Query(OutboxStatement.removeOldest, .integer(excess))
        return try await StoreError.mapping(await engine.transact(.commit([removal]) { $0[0].count }))
    }

    /// Drops deliveries to webhooks whose lease is not held.
    package func dropDeliveries(
        exceptTo hooks: [String], before instant: Int64
    ) async throws(StoreError) -> [String: Int] {
        let known = try await StoreError.mapping(
            await engine.rows(Query(OutboxStatement.hooks)) { row throws(AccountError) in try row.text(0) })
        var dropped: [String: Int] = [:]
        for hook in known where !hooks.contains(where: { $0.hasSameBytes(as: hook) }) {
            let deliveries = try await unattended(hook, before: instant)
            guard !deliveries.isEmpty else { continue }
            try await remove(deliveries)
            dropped[hook] = deliveries.count
        }
        return dropped
    }

    private func unattended(
        _ hook: String, before instant: Int64
    ) async throws(StoreError) -> [(number: Int64, event: String)] {
        let query = Query(
            OutboxStatement.unattended, .text(hook), .text(WebhookDeliverer.leaseName(of: hook)), .integer(instant),
            .integer(AccountStore.droppedAtOnce))
        return try await StoreError.mapping(
            await engine.rows(query) { row throws(AccountError) in
                (number: try row.integer(0), event: try row.text(1))
            })
    }

    private func change(_ queries: [Query]) async throws(StoreError) {
        try await StoreError.mapping(await engine.commit(queries))
    }

    /// A reason without NUL, which databases do not store, and of a bounded length.
    static func storable(_ reason: String) -> String {
        String(decoding: reason.utf8.filter { $0 != 0 }.prefix(500), as: UTF8.self)
    }

    private static func delivery(_ row: Row) throws(AccountError) -> DueDelivery {
        DueDelivery(number: try row.integer(0), event: try event(row), attempts: Int(clamping: try row.integer(1)))
    }

    private static func entry(_ row: Row) throws(AccountError) -> OutboxEntry {
        OutboxEntry(
            event: try event(row), hook: try row.text(7), state: try row.integer(8) == 0 ? .open : .dead,
            attempts: Int(clamping: try row.integer(1)), dueAt: try row.integer(9),
            error: try row.optionalText(10) ?? "")
    }

    private static func event(_ row: Row) throws(AccountError) -> Event {
        Event(
            id: try row.text(2), type: EventType(rawValue: try row.text(3)), subject: try row.text(4),
            time: try row.integer(5), data: try row.object(6))
    }
}

extension AccountStore: LeaseStoring {
    /// Acquires a lease, or extends it.
    package func acquireLease(_ name: String, owner: String, for duration: Duration) async throws(StoreError) -> Bool {
        let query = Query(OutboxStatement.acquireLease, .text(name), .text(owner), .integer(duration.wholeMilliseconds))
        return try await StoreError.mapping(await engine.change(query))
    }

    /// Releases a lease.
    package func releaseLease(_ name: String, owner: String) async throws(StoreError) {
        try await change([Query(OutboxStatement.releaseLease, .text(name), .text(owner))])
    }
}
