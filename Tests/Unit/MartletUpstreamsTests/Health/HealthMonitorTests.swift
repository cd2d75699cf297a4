import MartletCore
import MartletFetch
import MartletTesting
import Testing

@testable import MartletUpstreams

/// One endpoint that is probed every 50 ms, and each failure changes its state.
private final class Probed: Sendable {
    private let changes = Box<[HealthChange]>([])
    private let monitor: HealthMonitor

    init(_ request: ProbeRequest, interval: Duration = .milliseconds(50)) throws {
        monitor = try HealthMonitor { [changes] new in changes.withLock { $0 += new } }
        monitor.follow([
            HealthTarget(
                id: 1, upstream: "api", request: request, interval: interval, jitter: 20,
                thresholds: HealthThresholds(healthy: 1, unhealthy: 1))
        ])
    }

    deinit { monitor.shutdown() }

    var counts: HealthCounts { monitor.counts["api"] ?? HealthCounts() }

    /// Why it has become unhealthy.
    func failure() throws -> String {
        try waitUntil("it is unhealthy") { !changes.value.isEmpty }
        #expect(changes.value.first?.isHealthy == false)
        return changes.value.first?.reason ?? ""
    }

    /// Waits for so many successes, and expects no failure.
    func succeeds(_ count: Int = 3) throws {
        try waitUntil("\(count) successes") { counts.successes >= count || counts.failures > 0 }
        #expect(counts.failures == 0, "\(changes.value)")
    }
}

private func request(_ upstream: ScriptedUpstream, timeout: Duration = .seconds(10)) -> ProbeRequest {
    var request = ProbeRequest(to: .tcp(address: "127.0.0.1", port: upstream.port), host: "api.internal:9000")
    request.timeout = timeout
    return request
}

@Suite struct `Probes of HTTP endpoints` {
    @Test func `send a request with host and path, over a kept connection`() throws {
        let upstream = try ScriptedUpstream()
        var request = request(upstream)
        request.path = "/a/../healthz?deep=1"
        try Probed(request).succeeds(4)
        let first = try #require(upstream.requests.first)
        #expect(first.startLine == "GET /a/../healthz?deep=1 HTTP/1.1")
        #expect(first.all("host") == ["api.internal:9000"])
        #expect(first["user-agent"] == "martlet-health")
        #expect(upstream.acceptedConnections == 1)
    }

    @Test(arguments: [
        (200, true), (204, true), (302, true), (399, true), (400, false), (404, false), (500, false), (503, false),
    ])
    func `the status decides, and no redirect is followed`(_ status: Int, isExpected: Bool) throws {
        let upstream = try ScriptedUpstream {
            try $0.respond(status, [("Location", "http://127.0.0.1:1/")], body: status == 204 ? "" : "x")
        }
        let probed = try Probed(request(upstream))
        if isExpected { try probed.succeeds() } else { #expect(try probed.failure() == "status \(status)") }
    }

    @Test func `expected statuses are those of the file`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(503) }
        var request = request(upstream)
        request.expected = [200...200, 500...599]
        try Probed(request).succeeds()
        upstream.respond { try $0.respond(204) }
        #expect(try Probed(request).failure() == "status 204")
    }

    @Test func `a Unix socket`() throws {
        let folder = try TemporaryFolder()
        let upstream = try ScriptedUpstream(on: .unix(folder.file("s")))
        try Probed(ProbeRequest(to: .unix(path: folder.file("s")), host: "localhost")).succeeds()
        #expect(upstream.requests.first?["host"] == "localhost")
        upstream.stop()
        let missing = ProbeRequest(to: .unix(path: folder.file("missing")), host: "localhost")
        #expect(try Probed(missing).failure() == "no such file or directory")
    }

    @Test func `an IPv6 address`() throws {
        let upstream = try ScriptedUpstream(on: .tcp(host: "::1", port: 0))
        try Probed(ProbeRequest(to: .tcp(address: "::1", port: upstream.port), host: "x")).succeeds()
    }

    @Test func `a refused connection and a missing address`() throws {
        let refused = ProbeRequest(to: .tcp(address: "127.0.0.1", port: try refusedPort()), host: "x")
        #expect(try Probed(refused).failure() == "connection refused")
        #expect(try Probed(ProbeRequest(to: nil, host: "x")).failure() == "the host name has no address")
    }

    @Test func `a connection that the server closes between probes is no failure`() throws {
        let upstream = try ScriptedUpstream { exchange in
            try exchange.respond(200)
            exchange.closes = true
        }
        try Probed(request(upstream)).succeeds(5)
    }

    /// What a server does wrong, and what the probe says.
    enum Misbehavior: String, CaseIterable, Sendable {
        case hangs, hangsInBody, trickles, tricklesHead, endlessHead, endlessInterim, garbage, empty, closes
        case resetsInHead, resetsInBody, truncates, isOfVersion09

        func run(_ exchange: Exchange) throws {
            switch self {
            case .hangs: _ = exchange.waitForEnd()
            case .hangsInBody:
                try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
                _ = exchange.waitForEnd()
            case .trickles:
                try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                while exchange.socket.isSilent(for: .milliseconds(20)) { try exchange.send("x") }
            case .tricklesHead:
                try exchange.send("HTTP/1.1 200 OK\r\nX: ")
                while exchange.socket.isSilent(for: .milliseconds(20)) { try exchange.send("x") }
            case .endlessHead:
                try exchange.send("HTTP/1.1 200 OK\r\n")
                while true { try exchange.send("X-Field: \(String(repeating: "x", count: 900))\r\n") }
            case .endlessInterim: while true { try exchange.send("HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n") }
            case .garbage: try exchange.send("\u{0}\u{1}nonsense\r\n\r\nmore\r\n")
            case .empty: try exchange.send("\r\n")
            case .closes: break
            case .resetsInHead:
                try exchange.send("HTTP/1.1 200 OK\r\nContent-")
                exchange.socket.reset()
            case .resetsInBody:
                try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
                exchange.socket.reset()
            case .truncates: try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
            case .isOfVersion09: try exchange.send("plain text without a head")
            }
            exchange.closes = true
        }

        var reasons: Set<String> {
            switch self {
            case .hangs, .hangsInBody, .trickles, .tricklesHead: ["no response within 300 ms"]
            case .endlessHead, .endlessInterim: ["response head larger than 64 KiB"]
            case .garbage, .empty, .isOfVersion09: ["no HTTP response", "connection lost"]
            case .closes, .resetsInHead, .resetsInBody, .truncates: ["connection lost"]
            }
        }
    }

    @Test(arguments: Misbehavior.allCases)
    func `every kind of misbehavior is a failed probe in time`(_ misbehavior: Misbehavior) throws {
        let upstream = try ScriptedUpstream { try misbehavior.run($0) }
        let isSlow = misbehavior.reasons.contains("no response within 300 ms")
        let probed = try Probed(request(upstream, timeout: isSlow ? .milliseconds(300) : .seconds(10)))
        let reason = try probed.failure()
        #expect(misbehavior.reasons.contains(reason), "\(reason)")
        // It goes on.
        try waitUntil("a second failure") { probed.counts.failures > 1 }
        #expect(probed.counts.successes == 0)
    }

    @Test func `of an endless body 64 KiB are read, and the status decides`() throws {
        let sent = Box(0)
        let upstream = try ScriptedUpstream { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\n\r\n")
            let piece = [UInt8](repeating: 65, count: 16_384)
            while true {
                try exchange.send(piece)
                sent.withLock { $0 += piece.count }
            }
        }
        try Probed(request(upstream), interval: .seconds(60)).succeeds(1)
        try waitUntil("the connection is closed") { upstream.endedConnections == 1 }
        // What the kernel buffers is more than what is read.
        #expect(sent.value < 20_000_000)
    }

    @Test func `a change of the targets ends probes and begins others`() throws {
        let upstream = try ScriptedUpstream()
        let changes = Box<[HealthChange]>([])
        let monitor = try HealthMonitor { new in changes.withLock { $0 += new } }
        defer { monitor.shutdown() }
        let thresholds = HealthThresholds(healthy: 1, unhealthy: 1)
        let good = HealthTarget(
            id: 1, upstream: "a", request: request(upstream), interval: .milliseconds(50), jitter: 0,
            thresholds: thresholds)
        let bad = HealthTarget(
            id: 2, upstream: "b", request: ProbeRequest(to: nil, host: "x"), interval: .milliseconds(50), jitter: 0,
            thresholds: thresholds)
        monitor.follow([good, bad])
        try waitUntil("both are probed") {
            monitor.counts["a"]?.successes ?? 0 > 1 && monitor.counts["b"]?.failures ?? 0 > 1
        }
        monitor.follow([good])
        #expect(monitor.counts["b"] == nil)
        let before = monitor.counts["a"]?.successes ?? 0
        try waitUntil("the other goes on") { monitor.counts["a"]?.successes ?? 0 > before + 1 }
        #expect(changes.value.map(\.target) == [2])
    }

    @Test func `hundreds that hang do not keep others from being probed`() throws {
        let hanging = try Listener(on: .loopback(0))
        let upstream = try ScriptedUpstream()
        let monitor = try HealthMonitor { _ in }
        defer { monitor.shutdown() }
        var stuck = ProbeRequest(to: .tcp(address: "127.0.0.1", port: hanging.endpoint.port), host: "x")
        stuck.timeout = .milliseconds(200)
        let thresholds = HealthThresholds(healthy: 1, unhealthy: 1)
        var targets = (0..<400).map {
            HealthTarget(
                id: $0, upstream: "stuck", request: stuck, interval: .milliseconds(1000), jitter: 20,
                thresholds: thresholds)
        }
        targets.append(
            HealthTarget(
                id: 400, upstream: "good", request: request(upstream), interval: .milliseconds(100), jitter: 20,
                thresholds: thresholds))
        monitor.follow(targets)
        try waitUntil("both are probed") {
            monitor.counts["good"]?.successes ?? 0 > 5 && monitor.counts["stuck"]?.unhealthy == 400
        }
        #expect(monitor.counts["good"]?.failures == 0)
    }
}
