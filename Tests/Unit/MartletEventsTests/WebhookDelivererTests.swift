import MartletCore
import MartletCrypto
import MartletTesting
import Testing

@testable import MartletEvents

private let status503: Result<HTTPCallResponse, HTTPCallError> = .success(HTTPCallResponse(status: 503, body: []))
private let status204: Result<HTTPCallResponse, HTTPCallError> = .success(HTTPCallResponse(status: 204, body: []))

private func deliverer(
    _ outbox: FakeOutbox, _ receiver: FakeReceiver, clock: Clock = .system, maximumAge: Duration = .seconds(3600)
) throws -> WebhookDeliverer {
    let signer = try #require(WebhookSigner(Secret("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")))
    let hook = Webhook(
        name: "backend", url: "https://api.test/hook", signer: signer, timeout: .seconds(5),
        retries: RetrySchedule(maximumAge: maximumAge), source: "https://auth.test")
    return try WebhookDeliverer(
        hook, store: .init(outbox: outbox, leases: outbox, maximumEvents: 1000), client: receiver, clock: clock,
        logger: .silent)
}

/// Runs a deliverer until the body is through.
private func running(
    _ deliverer: WebhookDeliverer, _ body: () async throws -> Void
) async throws {
    let task = Task { await deliverer.run() }
    let result: Result<Void, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    deliverer.stop()
    await task.value
    try result.get()
}

@Suite(.timeLimit(.minutes(1))) struct WebhookDelivererTests {
    @Test func `posts signed CloudEvents and removes them`() async throws {
        let (outbox, receiver) = (FakeOutbox(), FakeReceiver())
        let now = Clock.system.unixMilliseconds
        try await running(try deliverer(outbox, receiver)) {
            outbox.add([delivery(1, of: "a", created: now), delivery(2, of: "b", created: now)])
            try await eventually("delivered") { outbox.open.isEmpty }
        }
        #expect(Set(receiver.ids) == ["e1", "e2"])
        let call = try #require(receiver.calls.value.first { $0.headers.contains { $0.value == "e1" } })
        #expect(call.url == "https://api.test/hook" && call.isRepeatable && call.discardsBody)
        guard case .body(let body, let type) = call.content else { throw TestFailure("\(call.content)") }
        #expect(type == "application/cloudevents+json")
        #expect(String(decoding: body, as: UTF8.self).contains(#""source":"https://auth.test""#))
        #expect(call.headers.map(\.name) == ["webhook-id", "webhook-timestamp", "webhook-signature"])
    }

    @Test func `keeps the order of a subject, through failures`() async throws {
        let outbox = FakeOutbox()
        let receiver = FakeReceiver { _, before in before == 0 ? status503 : status204 }
        let now = Clock.system.unixMilliseconds
        try await running(try deliverer(outbox, receiver)) {
            outbox.add((1...4).map { delivery($0, of: "a", created: now) })
            try await eventually("delivered") { outbox.open.isEmpty }
        }
        #expect(receiver.ids == ["e1", "e1", "e2", "e3", "e4"])
    }

    @Test func `a subject that fails delays no other`() async throws {
        let outbox = FakeOutbox()
        let receiver = FakeReceiver { call, _ in
            call.headers.contains { $0.value == "e1" } ? status503 : status204
        }
        let now = Clock.system.unixMilliseconds
        try await running(try deliverer(outbox, receiver)) {
            outbox.add([delivery(1, of: "bad", created: now), delivery(2, of: "bad", created: now)])
            outbox.add((3...50).map { delivery($0, of: "s\($0)", created: now) })
            try await eventually("the others are delivered") { outbox.open == [1, 2] }
        }
        #expect(!receiver.ids.contains("e2"))
    }

    @Test func `a request that hangs delays no other subject`() async throws {
        let outbox = FakeOutbox()
        let receiver = FakeReceiver { call, _ in
            if call.headers.contains(where: { $0.value == "e1" }) {
                await Gate.untilCancelled()
                return .failure(HTTPCallError(code: "fetch.cancelled", message: "cancelled"))
            }
            return status204
        }
        let now = Clock.system.unixMilliseconds
        let subject = try deliverer(outbox, receiver)
        let task = Task { await subject.run() }
        outbox.add([delivery(1, of: "slow", created: now)])
        try await eventually("the first is sent") { receiver.ids == ["e1"] }
        outbox.add((2...40).map { delivery($0, of: "s\($0)", created: now) })
        try await eventually("the others are delivered") { outbox.open == [1] }
        subject.stop()
        task.cancel()
        await task.value
        #expect(outbox.open == [1])
    }

    @Test func `a webhook that is down gets one attempt a second, and everything when it is back`() async throws {
        let outbox = FakeOutbox()
        let isUp = Box(false)
        let receiver = FakeReceiver { _, _ in isUp.value ? status204 : status503 }
        let time = SimulatedTime()
        let subject = try deliverer(outbox, receiver, clock: time.clock)
        try await running(subject) {
            outbox.add((1...500).map { delivery($0, of: "s\($0)", created: time.now) })
            // The first attempts are concurrent, and each of seven failures lets another one begin.
            let first = WebhookDeliverer.concurrency + 7
            try await eventually("it counts as down") { outbox.state.value.failures == first }
            for second in 1...3 {
                time.advance(by: .seconds(1))
                outbox.observers.signal()
                try await eventually("there is one more attempt") { outbox.state.value.failures == first + second }
            }
            #expect(subject.status.failure == "events.status: status 503")
            isUp.withLock { $0 = true }
            time.advance(by: .seconds(60))
            outbox.observers.signal()
            try await eventually("everything is delivered") { outbox.open.isEmpty }
            try await eventually("it is well again") { subject.status.failure == nil }
        }
    }

    @Test func `records confirmations together that come together`() async throws {
        let outbox = FakeOutbox()
        let gate = Gate()
        let receiver = FakeReceiver { _, before in
            if before == 9 { gate.open() }
            await gate.pass()
            return status204
        }
        // Time stands still, so that only a whole window is recorded.
        let time = SimulatedTime()
        try await running(try deliverer(outbox, receiver, clock: time.clock)) {
            outbox.add((1...10).map { delivery($0, of: "s\($0)", created: time.now) })
            try await eventually("everything is delivered") { outbox.open.isEmpty }
        }
        #expect(outbox.state.value.confirmations == 1)
    }

    @Test func `gives up what is too old and goes on`() async throws {
        let outbox = FakeOutbox()
        let receiver = FakeReceiver { call, _ in
            call.headers.contains { $0.value == "e1" } ? status503 : status204
        }
        let subject = try deliverer(outbox, receiver, maximumAge: .seconds(5))
        try await running(subject) {
            let now = Clock.system.unixMilliseconds
            outbox.add([delivery(1, of: "a", created: now - 10_000), delivery(2, of: "a", created: now)])
            try await eventually("the second is delivered") { outbox.open.isEmpty }
            #expect(subject.status.isHolder && subject.status.backlog != nil)
        }
        let status = subject.status
        #expect(status.delivered == 1 && status.failed == 0 && status.dead == 1)
        #expect(!status.isHolder && status.backlog == nil)
        let rows = outbox.state.value.rows
        #expect(rows.map(\.delivery.number) == [1] && rows[0].isDead && rows[0].reason.hasSuffix("status 503"))
        #expect(receiver.ids == ["e1", "e2"])
    }

    @Test func `sends nothing without the lease, and takes it over`() async throws {
        let (outbox, receiver) = (FakeOutbox(), FakeReceiver())
        outbox.state.withLock { $0.leases["webhook:backend"] = "another instance" }
        let time = SimulatedTime()
        try await running(try deliverer(outbox, receiver, clock: time.clock)) {
            outbox.add([delivery(1)])
            try await eventually("it asks") { outbox.state.value.asked == 1 }
            time.advance(by: .seconds(1))
            outbox.observers.signal()
            try await eventually("it asks again") { outbox.state.value.asked == 2 }
            #expect(receiver.ids.isEmpty)
            outbox.state.withLock { $0.leases = [:] }
            time.advance(by: .seconds(1))
            outbox.observers.signal()
            try await eventually("delivered") { outbox.open.isEmpty }
        }
        #expect(outbox.state.value.leases.isEmpty && outbox.state.value.releases == 1)
    }

    @Test func `goes on after an outage of the outbox`() async throws {
        let (outbox, receiver) = (FakeOutbox(), FakeReceiver())
        try await running(try deliverer(outbox, receiver)) {
            outbox.add([delivery(1)])
            try await eventually("delivered") { outbox.open.isEmpty }
            outbox.state.withLock { $0.isAvailable = false }
            outbox.add([delivery(2)])
            try await eventually("it has noticed") { outbox.state.value.refused > 0 }
            outbox.state.withLock { $0.isAvailable = true }
            try await eventually("delivered") { outbox.open.isEmpty }
        }
        #expect(receiver.ids == ["e1", "e2"])
    }

    @Test func `finishes requests in progress when it is stopped`() async throws {
        let outbox = FakeOutbox()
        let gate = Gate()
        let receiver = FakeReceiver { _, _ in
            await gate.pass()
            return status204
        }
        let subject = try deliverer(outbox, receiver)
        let task = Task { await subject.run() }
        outbox.add([delivery(1), delivery(2)])
        try await eventually("sent") { !receiver.ids.isEmpty }
        subject.stop()
        gate.open()
        await task.value
        #expect(receiver.ids == ["e1"] && outbox.open == [2])
    }
}
