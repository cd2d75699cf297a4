import MartletCore
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct CountersTests {
    @Test func `a route keeps its slot across configurations`() {
        var counters = Counters(loop: 2)
        counters.assignSlots(toRoutes: ["a", "b"])
        let first = counters.routes.configured.map(\.rawValue)
        counters.assignSlots(toRoutes: ["c", "b"])
        let second = counters.routes.configured.map(\.rawValue)
        let loop = counters.report().loop
        #expect(first == [1, 2] && second == [3, 2] && loop == 2)
    }

    @Test func `durations are counted in the buckets that are reported`() {
        #expect(RouteCounters.bounds == latencyBounds)
        var counters = Counters()
        for bound in latencyBounds {
            counters.count(route: .noRoute, status: 200, reason: 0, microseconds: bound)
            counters.count(route: .noRoute, status: 200, reason: 0, microseconds: bound + 1)
        }
        let row = counters.report().latency.first
        let inner = [Int](repeating: 2, count: latencyBounds.count - 1)
        #expect(row?.route == "-" && row?.buckets == [1] + inner + [1])
        #expect(row?.sumMicroseconds == latencyBounds.reduce(0) { $0 + 2 * $1 + 1 })
    }

    @Test func `requests are counted by route and status`() {
        var counters = Counters()
        counters.assignSlots(toRoutes: ["a", "b"])
        let routes = counters.routes.configured
        let finished: [(RouteSlot, Int)] = [
            (routes[0], 200), (routes[1], 200), (routes[1], 502), (routes[1], 200), (.noRoute, 404),
        ]
        for (route, status) in finished {
            counters.count(route: route, status: status, reason: 0, microseconds: 1)
        }
        let rows = counters.report().requests.map { "\($0.route) \($0.status) \($0.count)" }
        #expect(rows == ["- 404 1", "a 200 1", "b 200 2", "b 502 1"])
    }

    @Test func `checks of a route are counted apart from its requests`() {
        var counters = Counters()
        counters.assignSlots(toRoutes: ["a"])
        let route = counters.routes.configured[0]
        let checks = counters.routes.checkSlot(of: route)
        for slot in [route, checks, counters.routes.checkSlot(of: checks), counters.routes.checkSlot(of: .noRoute)] {
            counters.count(route: slot, status: 200, reason: 0, microseconds: 1)
        }
        counters.assignSlots(toRoutes: ["b", "a"])
        let isSame = counters.routes.configured[1] == route && counters.routes.checkSlot(of: route) == checks
        let rows = counters.report().requests.map { "\($0.route) \($0.isCheck) \($0.count)" }
        #expect(isSame && Set(rows) == ["a false 1", "a true 2", "- true 1"] && rows.count == 3)
    }

    @Test(arguments: [(-1, 0), (599, 599), (600, 599), (Int.max, 599)])
    func `a status out of range is counted at the nearest one`(status: Int, counted: Int) {
        var counters = Counters()
        counters.count(route: .noRoute, status: status, reason: 0, microseconds: 1)
        let rows = counters.report().requests
        #expect(rows.map(\.status) == [counted])
    }

    @Test func `a reason keeps its index, and success is not counted`() {
        var counters = Counters()
        let first = counters.reason("router.no_route")
        let second = counters.reason("policy.denied")
        let again = counters.reason("router.no_route")
        #expect(first == 1 && second == 2 && again == first)
        for reason in [0, first, first, second] {
            counters.count(route: .noRoute, status: 200, reason: reason, microseconds: 1)
        }
        let texts = counters.reasons.texts.map { String(decoding: $0, as: UTF8.self) }
        let members = counters.reasons.members
        let reasons = counters.report().reasons
        #expect(texts == ["ok", "router.no_route", "policy.denied"] && members == [[], [], []])
        #expect(reasons == ["router.no_route": 2, "policy.denied": 1])
    }

    @Test func `groups are reported as they were counted`() {
        var counters = Counters()
        counters.connections.accepted = 3
        counters.connections.displaced = 1
        counters.proxyHeaderRejected("proxy_protocol.bad_signature")
        counters.http2.connections = 2
        counters.http2.resets = 4
        counters.tunnels.open = 1
        counters.tunnels.opened = 5
        let reason = counters.reason("tunnel.idle")
        counters.countClosedTunnel(reason: reason)
        counters.countClosedTunnel(reason: reason)
        counters.handshakeCompleted("TLSv1.3", isResumed: false)
        counters.handshakeCompleted("TLSv1.3", isResumed: true)
        counters.handshakeFailed("tls.bad_certificate")
        let report = counters.report()
        #expect(report.connections.accepted == 3 && report.connections.displaced == 1)
        #expect(report.connections.proxyHeaderRejections == ["proxy_protocol.bad_signature": 1])
        #expect(report.http2.connections == 2 && report.http2.resets == 4)
        #expect(report.tunnels.open == 1 && report.tunnels.opened == 5 && report.tunnels.ends == ["tunnel.idle": 2])
        #expect(report.handshakes == ["TLSv1.3": 1, "TLSv1.3 resumed": 1, "tls.bad_certificate": 1])
    }
}
