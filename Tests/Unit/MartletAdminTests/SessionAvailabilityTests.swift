import MartletConfig
import MartletCore
import MartletRedis
import MartletResponder
import Testing

@testable import MartletAdmin
@testable import MartletEvents

@Suite struct SessionAvailabilityTests {
    private func availability(
        after outage: Duration?, _ onError: StoreConfiguration.OnError = .cached
    ) -> SessionAvailability {
        SessionAvailability(outage: outage, onError: onError, cacheTTL: .seconds(5))
    }

    @Test func `copies are used for as long as one can be young enough`() {
        #expect(availability(after: nil) == .ready)
        #expect(availability(after: .zero) == .cached)
        #expect(availability(after: .milliseconds(4_999)) == .cached)
        #expect(availability(after: .seconds(5)) == .refused)
    }

    @Test func `without copies all are refused from the beginning`() {
        #expect(availability(after: nil, .deny) == .ready)
        #expect(availability(after: .zero, .deny) == .refused)
    }

    @Test func `an outage lasts from the loss of the connection`() {
        var status = RedisStatus(since: MonotonicTime(nanoseconds: 1_000_000_000))
        let now = MonotonicTime(nanoseconds: 3_000_000_000)
        #expect(AdminReport.Store.redis(status).outage(at: now) == .seconds(2))
        status.state = .connected
        #expect(AdminReport.Store.redis(status).outage(at: now) == nil)
        #expect(AdminReport.Store.memory.outage(at: now) == nil)
    }

    @Test func `readiness names a webhook that gets nothing, once that is no single failure`() throws {
        var status = WebhookStatus(hook: "mail")
        func check() -> Readiness.Check? {
            let readiness = Readiness(
                store: .memory, subscription: nil, accounts: nil, onError: .cached, providers: [],
                webhooks: [status], isDraining: false)
            #expect(readiness.state == (status.failure == nil ? .ready : .degraded))
            return readiness.checks.first
        }
        status.countFailure(.retry(at: 1, reason: "mail.unreachable: refused"))
        #expect(check() == Readiness.Check(name: "webhook.mail", state: "ready", detail: ""))
        status.countFailure(.retry(at: 2, reason: "mail.unreachable: refused"))
        #expect(check()?.state == "degraded")
        #expect(check()?.detail == "mail.unreachable: refused; what it does not confirm is sent again")
    }

    @Test func `readiness names it`() throws {
        let readiness = Readiness(
            instanceID: "edge-1", store: .memory, sessions: .refused, subscription: nil, accounts: nil,
            onError: .cached, providers: [], isDraining: false)
        let check = try #require(readiness.checks.first { $0.name == "sessions" })
        #expect(check.state == "refused")
        #expect(check.detail == "requests with sessions get 503")
        #expect(String(decoding: readiness.response.body, as: UTF8.self).contains(#""instance_id":"edge-1""#))
    }
}
