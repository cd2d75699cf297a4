import MartletAccounts
import MartletConfig
import MartletCore
import MartletProvider
import MartletRedis
import MartletResponder
import Testing

@testable import MartletAdmin

@Suite struct `Readiness states` {
    struct Row: CustomTestStringConvertible {
        let testDescription: String
        let status: Int
        let state: Readiness.State
        let make: @Sendable (inout ReportFixture) -> Void

        init(
            _ text: String, _ status: Int, _ state: Readiness.State,
            _ make: @escaping @Sendable (inout ReportFixture) -> Void
        ) {
            testDescription = text
            self.status = status
            self.state = state
            self.make = make
        }
    }

    static let rows: [Row] = [
        Row("no dependencies", 200, .ready) { _ in },
        Row("all healthy", 200, .ready) {
            $0.store = ReportFixture.redis(.connected)
            $0.providers = [ReportFixture.provider("apple", .ready)]
        },
        Row("store down, cached", 200, .degraded) { $0.store = ReportFixture.redis(.down) },
        Row("store connecting, cached", 200, .degraded) { $0.store = ReportFixture.redis(.connecting) },
        Row("store down, deny", 503, .unavailable) {
            $0.store = ReportFixture.redis(.down)
            $0.onError = .deny
        },
        Row("one master of several away, cached", 200, .degraded) { $0.store = ReportFixture.impaired() },
        Row("one master of several away, deny", 200, .degraded) {
            $0.store = ReportFixture.impaired()
            $0.onError = .deny
        },
        Row("not subscribed to revocations", 200, .degraded) {
            $0.store = ReportFixture.redis(.connected)
            $0.subscription = RedisStatus(since: MonotonicTime(nanoseconds: 0))
        },
        Row("accounts ready", 200, .ready) { $0.accounts = AccountHealth(state: .ready) },
        Row("accounts unavailable", 200, .degraded) { $0.accounts = AccountHealth(state: .unavailable) },
        Row("provider degraded", 200, .degraded) { $0.providers = [ReportFixture.provider("apple", .degraded)] },
        Row("provider unavailable", 200, .degraded) { $0.providers = [ReportFixture.provider("apple", .unavailable)] },
        Row("provider without health", 200, .ready) { $0.providers = [.init(name: "x", kind: "y", health: nil)] },
        Row("draining", 503, .draining) { $0.isDraining = true },
        Row("draining with a store down", 503, .draining) {
            $0.isDraining = true
            $0.store = ReportFixture.redis(.down)
            $0.onError = .deny
        },
    ]

    @Test func `a server that says why it is of no use is degraded, and one that says nothing is down`() {
        var fixture = ReportFixture()
        for (code, state): (ErrorCode, String) in [
            ("redis.loading", "degraded"), ("redis.too_many_clients", "degraded"), ("redis.cluster_down", "degraded"),
            ("redis.connect_failed", "down"), ("redis.wrong_password", "down"),
        ] {
            fixture.store = ReportFixture.redis(.down, code: code)
            #expect(fixture.readiness.checks.first { $0.name == "store" }?.state == state, "\(code)")
            #expect(fixture.readiness.state == .degraded)
        }
    }

    @Test(arguments: rows) func `follow from the state of the dependencies`(row: Row) {
        var fixture = ReportFixture()
        row.make(&fixture)
        let readiness = fixture.readiness
        #expect(readiness.state == row.state)
        #expect(readiness.response.status == row.status)
        let retry = readiness.response.fields.first { $0.name == "Retry-After" }?.value
        #expect((retry != nil) == (row.status == 503))
    }

    @Test func `name the failed dependency and the reason`() {
        var fixture = ReportFixture()
        fixture.store = ReportFixture.redis(.down)
        fixture.providers = [ReportFixture.provider("apple", .unavailable), ReportFixture.provider("other", .ready)]
        let response = fixture.readiness.response
        let text = String(decoding: response.body, as: UTF8.self)
        for part in ["\"degraded\"", "\"store\"", "connection refused", "provider.apple", "detail of apple"] {
            #expect(text.contains(part), "\(part) in \(text)")
        }
    }

    @Test func `name the unavailable masters, and why commands fail`() throws {
        var fixture = ReportFixture()
        fixture.store = ReportFixture.impaired()
        let check = try #require(fixture.readiness.checks.first)
        #expect(check.name == "store" && check.state == "degraded" && !check.isHealthy)
        #expect(
            check.detail == "master h2:7002 is unavailable: connection refused; 7 slots have no master; "
                + "requests that need what is stored there get 503")
        var status = RedisStatus(since: MonotonicTime(nanoseconds: 0))
        status.state = .connected
        #expect(StoreImpairment(status) == nil)
        status.commandFailure = StoreError(code: .redisTooManyRedirects, message: "redirected")
        #expect(StoreImpairment(status)?.detail == "commands fail: redirected [redis.too_many_redirects]")
        for port in 1...20 as ClosedRange<UInt16> {
            status.lostMasters[.tcp(host: "h", port: port)] = StoreError(code: .redisTimeout, message: "silent")
        }
        #expect(StoreImpairment(status)?.detail.contains("; 12 more masters are unavailable; ") == true)
    }
}
