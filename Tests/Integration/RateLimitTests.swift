import Foundation
import MartletTesting
import Testing

/// Asks without pause for two seconds, with eight clients in turn at these gateways, and checks what passes against a
/// limit of 100 a second with a burst of 50 for all of them.
/// - Returns: how many requests passed.
@discardableResult
func expectBound(_ gateways: [Gateway], sourceLocation: SourceLocation = #_sourceLocation) -> Int {
    let passed = Box(0)
    let stopwatch = Stopwatch()
    DispatchQueue.concurrentPerform(iterations: 8) { index in
        guard let client = try? gateways[index % gateways.count].connect() else { return }
        while stopwatch.elapsed < .seconds(2) {
            guard let response = try? client.exchange("GET", "/limited/a") else { return }
            if response.status == 200 { passed.withLock { $0 += 1 } }
            pause(.milliseconds(5))
        }
    }
    let seconds = stopwatch.elapsed / .seconds(1)
    #expect(
        Double(passed.value) <= (50 + 100 * seconds) * 1.1, "\(passed.value) in \(seconds) s",
        sourceLocation: sourceLocation)
    // Clients that ask without pause get all of it, unless the machine has no time for either side.
    #expect(passed.value >= 50, sourceLocation: sourceLocation)
    return passed.value
}

/// Limits on how often requests of a route may come, and on how many are under way.
@Suite struct `Rate limits` {
    /// A gateway with limits before one scripted upstream, and a simulated Apple.
    private static func withLimits(
        _ limits: String, routes: String, workers: Int = 2,
        script: @escaping ScriptedUpstream.Script = { try $0.respond(200, body: "ok") },
        _ body: (Gateway, ScriptedUpstream, AppleFixture) throws -> Void
    ) throws {
        try withAppleGateway(
            routes: routes, server: "workers: \(workers)", more: "rate_limits:\n\(limits)\n", script: script, body)
    }

    private static func open(_ limits: String) -> String {
        """
        - { name: limited, match: { path: /limited/** }, auth: none, upstream: api, limits: { \(limits) } }
        - { name: free, match: { path: /** }, auth: none, upstream: api }
        """
    }

    @Test func `a client over its limit gets 429 and when to come back`() throws {
        try Self.withLimits(
            "  slow: { key: address, rate: 2/h }", routes: Self.open("rate: [slow], announce: true")
        ) { gateway, upstream, _ throws in
            for left in [1, 0] {
                let response = try gateway.get("/limited/a")
                #expect(response.status == 200)
                #expect(response["RateLimit-Policy"] == "\"slow\";q=2;w=3600")
                #expect(response["RateLimit"]?.hasPrefix("\"slow\";r=\(left);t=") == true)
            }
            let rejected = try gateway.get("/limited/a")
            expectRejection(rejected, 429, "throttled")
            let seconds = Int(rejected["Retry-After"] ?? "") ?? 0
            #expect((1_700...1_800).contains(seconds), "\(seconds)")
            #expect(rejected["RateLimit-Policy"] == "\"slow\";q=2;w=3600")
            #expect(rejected["RateLimit"] == "\"slow\";r=0;t=\(seconds)")
            let free = try gateway.get("/free")
            #expect(free.status == 200 && free["RateLimit"] == nil && free["RateLimit-Policy"] == nil)
            #expect(upstream.requests.count == 3)
            try waitUntil("the log names the limit") {
                gateway.log.contains {
                    $0["reason"] == "limits.rate_exceeded" && $0["condition"] == "slow" && $0["route"] == "limited"
                }
            }
            let metrics = try gateway.askAdmin("/metrics").text
            #expect(metrics.contains("martlet_proxy_refusals_total{reason=\"limits.rate_exceeded\"} 1\n"))
        }
    }

    @Test func `all event loops together pass the burst and the rate`() throws {
        try Self.withLimits(
            "  fast: { key: address, rate: 100/s, burst: 50 }", routes: Self.open("rate: [fast]"), workers: 4
        ) { gateway, upstream, _ throws in
            let passed = expectBound([gateway])
            #expect(upstream.requests.count == passed)
        }
    }

    @Test func `callers are counted one by one, and an invalid credential takes none of theirs`() throws {
        let routes = """
            - name: api
              match: { path: /v1/** }
              auth: { providers: [apple] }
              limits: { rate: [per_person, per_address] }
              upstream: api
            """
        let limits = """
              per_person: { key: subject, rate: 2/h }
              per_address: { key: [address, "header:X-Test"], rate: 3/h }
            """
        try Self.withLimits(limits, routes: routes) { gateway, _, apple throws in
            func get(_ token: String, _ test: String) throws -> HTTPMessage {
                try gateway.get("/v1/a", bearer(token) + [("X-Test", test)])
            }
            let ada = try apple.token(subject: "ada")
            let sameAda = try apple.token(subject: "ada")
            let grace = try apple.token(subject: "grace")
            #expect(try get(ada, "1").status == 200)
            #expect(try get(sameAda, "2").status == 200)
            for _ in 0..<4 {
                let rejected = try get(ada, "3")
                expectRejection(rejected, 429, "throttled")
                #expect(rejected["RateLimit"]?.hasPrefix("\"per_person\";r=0;t=") == true)
            }
            // The other limit got its token back each time.
            for _ in 0..<2 { #expect(try get(grace, "3").status == 200) }
            expectUnauthorized(try get(grace + "x", "3"), "credential_invalid")
            let rejected = try get(grace + "x", "3")
            expectRejection(rejected, 429, "throttled", "the limit by address counts invalid credentials")
            #expect(rejected["RateLimit"]?.hasPrefix("\"per_address\";r=0;t=") == true)
        }
    }

    @Test func `a new configuration keeps what was counted`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        var config = GatewayConfig(endpoints: [upstream.url], routes: Self.open("rate: [slow]"))
        config.more = "rate_limits: { slow: { key: address, rate: 1/h } }\n"
        // A new configuration reaches one loop after the other.
        config.server = "workers: 1"
        try withMartlet(config.text) { gateway throws in
            #expect(try gateway.get("/limited/a").status == 200)
            #expect(try gateway.get("/limited/a").status == 429)
            config.routes = "- { name: new, match: { path: /new }, auth: none, upstream: api }\n" + config.routes
            config.routes = config.routes.replacingOccurrences(
                of: "{ name: free, match: { path: /** }", with: "{ name: free, match: { path: /free }")
            try gateway.reload(config.text)
            try waitUntil("the new routes hold") { try gateway.get("/other").status == 404 }
            #expect(try gateway.get("/limited/a").status == 429)
            // Counted by something else, it begins anew.
            config.more = "rate_limits: { slow: { key: host, rate: 1/h } }\n"
            config.routes = config.routes.replacingOccurrences(of: "/free", with: "/last")
            try gateway.reload(config.text)
            try waitUntil("the new routes hold") { try gateway.get("/free").status == 404 }
            #expect(try gateway.get("/limited/a").status == 200)
            #expect(try gateway.get("/limited/a").status == 429)
        }
    }

    @Test func `over its concurrency a route responds 503, however its requests end`() throws {
        let isHeld = Box(true)
        let script: ScriptedUpstream.Script = { exchange in
            if exchange.request.startLine.contains("/limited/held") {
                try waitUntil("it may go on", within: .seconds(20)) { !isHeld.value }
            }
            try exchange.respond(200, body: "ok")
        }
        try Self.withLimits(
            "  unused: { key: address, rate: 1/h }", routes: Self.open("concurrency: 2"), script: script
        ) { gateway, upstream, _ throws in
            defer { isHeld.withLock { $0 = false } }
            let (first, second) = (try gateway.connect(), try gateway.connect())
            try first.send("GET", "/limited/held/1")
            try second.send("GET", "/limited/held/2")
            try waitUntil("both are under way") { upstream.requests.count == 2 }
            let rejected = try gateway.get("/limited/a")
            expectRejection(rejected, 503, "overloaded")
            #expect(rejected["Retry-After"] == "1")
            #expect(try gateway.get("/free").status == 200)
            // One client leaves, and the next request has its place.
            first.close()
            try waitUntil("there is room") { try gateway.get("/limited/a").status == 200 }
            // The endpoint responds to the other one.
            isHeld.withLock { $0 = false }
            #expect(try second.response().status == 200)
            let (third, fourth) = (try gateway.connect(), try gateway.connect())
            #expect(try third.exchange("GET", "/limited/a").status == 200)
            #expect(try fourth.exchange("GET", "/limited/a").status == 200)
        }
    }

    @Test func `an explanation lists the limits of the route`() throws {
        let folder = try TemporaryFolder()
        var config = GatewayConfig(endpoints: ["http://127.0.0.1:9"], routes: Self.open("rate: [slow], concurrency: 7"))
        config.more = "rate_limits: { slow: { key: [address, \"header:X-A\"], rate: 5/m, burst: 9 } }\n"
        try folder.write(config.text, to: "config.yaml")
        let result = try run(
            try Executable.martlet(), ["explain", "--config", folder.file("config.yaml"), "--path", "/limited/a"])
        #expect(result.output.contains("slow: 5/m by address, header:x-a, at most 9 at a time"), "\(result)")
        #expect(result.output.contains("7 requests under way at a time"), "\(result)")
    }

    @Test func `a shared limit needs a store that instances share`() throws {
        let folder = try TemporaryFolder()
        var config = GatewayConfig(endpoints: ["http://127.0.0.1:9"], routes: Self.open("rate: [slow]"))
        config.more = "rate_limits: { slow: { key: address, rate: 5/m, shared: true } }\n"
        try folder.write(config.text, to: "config.yaml")
        let result = try run(try Executable.martlet(), ["check", "--config", folder.file("config.yaml")])
        #expect(result.ending != .exited(0) && result.description.contains("[config.missing_key]"), "\(result)")
    }
}
