import MartletCore
import MartletTesting

@testable import MartletEvents

/// An outbox and its leases in memory, which can be unavailable.
final class FakeOutbox: OutboxStoring, LeaseStoring {
    struct Row: Sendable {
        var delivery: DueDelivery
        var dueAt: Int64 = 0
        var isDead = false
        var reason = ""
    }

    struct State: Sendable {
        var rows: [Row] = []
        var leases: [String: String] = [:]
        var isAvailable = true
        var trimmed: [Int] = []
        /// The number of transactions that confirmed deliveries.
        var confirmations = 0
        /// The number of failures that were recorded.
        var failures = 0
        var releases = 0
        /// How often a lease was asked for.
        var asked = 0
        /// The number of calls during an outage.
        var refused = 0
        var dropped: [[String: Int]] = []
        var drops: [(hooks: [String], instant: Int64)] = []
    }

    let state = Box(State())
    let observers = OutboxObservers()

    private static let outage = StoreError(code: "test.unavailable", message: "away")

    /// Adds deliveries that are due.
    func add(_ deliveries: [DueDelivery]) {
        state.withLock { $0.rows += deliveries.map { Row(delivery: $0) } }
        observers.signal()
    }

    var open: [Int64] { state.value.rows.filter { !$0.isDead }.map(\.delivery.number) }

    private func change<Value: Sendable>(
        _ body: (inout State) -> Value
    ) throws(StoreError) -> Value {
        let value = state.withLock { state -> Value? in
            if state.isAvailable { return body(&state) }
            state.refused += 1
            return nil
        }
        guard let value else { throw FakeOutbox.outage }
        return value
    }

    func subscribe(_ subscriptions: EventSubscriptions) {}

    func dueDeliveries(of hook: String, at now: Int64, limit: Int) async throws(StoreError) -> [DueDelivery] {
        try change { state in
            var subjects: Set<String> = []
            let open = state.rows.filter { !$0.isDead }.sorted { $0.delivery.number < $1.delivery.number }
            let heads = open.filter { subjects.insert($0.delivery.event.subject).inserted }
            return heads.filter { $0.dueAt <= now }.prefix(limit).map(\.delivery)
        }
    }

    func noteDelivered(_ deliveries: [DueDelivery]) async throws(StoreError) {
        let numbers = Set(deliveries.map(\.number))
        try change { state in
            state.confirmations += 1
            state.rows.removeAll { numbers.contains($0.delivery.number) }
        }
    }

    func noteFailed(
        _ delivery: DueDelivery, to hook: String, retryAt: Int64, reason: String
    ) async throws(StoreError) {
        try change { state in
            state.failures += 1
            guard let index = state.rows.firstIndex(where: { $0.delivery.number == delivery.number }) else { return }
            let attempts = state.rows[index].delivery.attempts + 1
            state.rows[index].delivery = DueDelivery(
                number: delivery.number, event: delivery.event, attempts: attempts)
            state.rows[index].dueAt = retryAt
            state.rows[index].reason = reason
        }
    }

    func noteDead(_ delivery: DueDelivery, reason: String) async throws(StoreError) {
        try change { state in
            guard let index = state.rows.firstIndex(where: { $0.delivery.number == delivery.number }) else { return }
            state.rows[index].isDead = true
            state.rows[index].reason = reason
        }
    }

    func entries(
        to hook: String?, in state: OutboxEntry.State?, from start: Int64, limit: Int
    ) async throws(StoreError) -> OutboxPage { OutboxPage(entries: [], next: nil) }

    func backlog(of hook: String) async throws(StoreError) -> OutboxBacklog {
        try change { state in
            var backlog = OutboxBacklog()
            backlog.open = state.rows.count { !$0.isDead }
            backlog.dead = state.rows.count { $0.isDead }
            return backlog
        }
    }

    func resend(_ id: String, at now: Int64) async throws(StoreError) -> [String] { [] }

    func trim(to maximumEvents: Int) async throws(StoreError) -> Int {
        try change { state in
            state.trimmed.append(maximumEvents)
            return 0
        }
    }

    /// The deliveries that `dropped` lists, one element with each call.
    func dropDeliveries(exceptTo hooks: [String], before instant: Int64) async throws(StoreError) -> [String: Int] {
        try change { state in
            state.drops.append((hooks, instant))
            return state.dropped.isEmpty ? [:] : state.dropped.removeFirst()
        }
    }

    func acquireLease(_ name: String, owner: String, for duration: Duration) async throws(StoreError) -> Bool {
        try change { state in
            state.asked += 1
            if state.leases[name] == nil { state.leases[name] = owner }
            return state.leases[name] == owner
        }
    }

    func releaseLease(_ name: String, owner: String) async throws(StoreError) {
        try change { state in
            state.releases += 1
            if state.leases[name] == owner { state.leases[name] = nil }
        }
    }
}

/// A receiver of webhooks that records what is sent.
final class FakeReceiver: HTTPCalling {
    typealias Script = @Sendable (HTTPCall, Int) async -> Result<HTTPCallResponse, HTTPCallError>

    let calls = Box<[HTTPCall]>([])
    private let script: Script

    /// - Parameter script: called with each call and how many there were before it.
    init(_ script: @escaping Script = { _, _ in .success(HTTPCallResponse(status: 204, body: [])) }) {
        self.script = script
    }

    /// The ids of the events, in the order in which they were sent.
    var ids: [String] {
        calls.value.map { call in call.headers.first { $0.name == "webhook-id" }?.value ?? "" }
    }

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        let before = calls.withLock { calls in
            calls.append(call)
            return calls.count - 1
        }
        return try await script(call, before).get()
    }
}
