import MartletTesting
import Testing

/// What happens when there is more to do than the gateway can do in time.
@Suite(.timeLimit(.minutes(2))) struct OverloadTests {
    private static func withOverload(
        _ overload: String, _ body: (Gateway) throws -> Void
    ) throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        var config = GatewayConfig(endpoints: [upstream.url])
        config.routes = "- { name: one, match: { path: /one }, auth: none, upstream: api }"
        config.server = "workers: 1\nhealth: { path: /health }\noverload: { \(overload) }"
        try withMartlet(config.text, body)
    }

    /// Keeps the gateway busy with requests that need no upstream, for as long as the box says.
    private static func flood(_ gateway: Gateway, until isOver: Box<Bool>) -> [Background<Void>] {
        // Long ones, so that a turn has few of them: on a busy machine it would last for seconds, and all others wait.
        let long = "GET /none?\(String(repeating: "a", count: 400)) HTTP/1.1\r\nHost: a\r\n\r\n"
        let requests = String(repeating: long, count: 50)
        return (0..<3).map { _ in
            Background {
                while !isOver.value {
                    guard let socket = try? RawSocket(connectingTo: gateway.endpoint) else { continue }
                    // To the end: the gateway reads no more than it can respond to.
                    let reading = Background { while let bytes = try? socket.receive(), !bytes.isEmpty {} }
                    while !isOver.value, (try? socket.send(requests)) != nil {}
                    socket.abort()
                    _ = try? reading.value()
                    socket.close()
                }
            }
        }
    }

    @Test func `a loop with slow turns rejects requests, not those of operators, and recovers`() throws {
        try Self.withOverload("loop_delay: 5ms") { gateway throws in
            let isOver = Box(false)
            let flood = Self.flood(gateway, until: isOver)
            var rejected: HTTPMessage?
            try? waitUntil("a request is rejected", within: .seconds(30)) {
                guard let response = try? gateway.get("/one"), response.status == 503 else { return false }
                rejected = response
                return true
            }
            let operators = try (0..<2).map { _ in try gateway.askAdmin("/healthz").status }
            let health = try (0..<2).map { _ in try gateway.get("/health").status }
            isOver.withLock { $0 = true }
            for thread in flood { try thread.value() }
            expectRejection(try #require(rejected), 503, "overloaded")
            #expect(rejected?["Retry-After"] == "1")
            #expect(operators == [200, 200])
            #expect(health == [200, 200])
            try waitUntil("all loops have recovered", within: .seconds(10)) {
                try gateway.askAdmin("/metrics").text.contains("martlet_server_overloaded{cause=\"loop\"} 0\n")
            }
            #expect(try (0..<20).allSatisfy { _ in try gateway.get("/one").status == 200 })
            let metrics = try gateway.askAdmin("/metrics").text
            #expect(metrics.contains("martlet_proxy_refusals_total{reason=\"server.overloaded\"}"))
            #expect(!metrics.contains("martlet_server_slow_turns_total 0\n"))
            #expect(metrics.contains("martlet_server_overloaded{cause=\"memory\"} 0\n"))
        }
    }

    @Test func `without the configuration nothing is watched`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        try withMartlet(GatewayConfig(endpoints: [upstream.url]).text) { gateway throws in
            #expect(try gateway.get("/a").status == 200)
            #expect(!(try gateway.askAdmin("/metrics").text.contains("martlet_server_overloaded")))
        }
    }
}
