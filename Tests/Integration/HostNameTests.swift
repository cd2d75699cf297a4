import MartletTesting
import Testing

/// Upstreams whose endpoints have host names.
@Suite struct `Host names of upstreams` {
    @Test func `an unknown name is no reason not to start, and is logged`() throws {
        let config = GatewayConfig(endpoints: ["http://unknown.invalid:81"])
        try withMartlet(config.text) { gateway throws in
            expectRejection(try gateway.get("/"), 502, "upstream_unavailable")
            let line = gateway.log.first { $0["event"] == "upstream host name could not be resolved" }
            #expect(line?["host"] == "unknown.invalid" && line?["code"] == "resolver.name_unknown")
        }
    }

    @Test func `an unknown name of a reload is no reason not to adopt it`() throws {
        let upstream = try ScriptedUpstream()
        let first = GatewayConfig(endpoints: ["http://localhost:\(upstream.port)"])
        try withMartlet(first.text) { gateway throws in
            #expect(try gateway.get("/").status == 200)
            let both = GatewayConfig(endpoints: ["http://unknown.invalid:81", "http://localhost:\(upstream.port)"])
            try gateway.reload(both.text)
            try waitUntil("it is reloaded") {
                try gateway.askAdmin("/metrics").text.contains("martlet_server_reloads_total{result=\"success\"} 1\n")
            }
            for _ in 0..<6 { #expect(try gateway.get("/").status == 200) }
        }
    }

    @Test func `each address of a name is probed by itself, with the name as host`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(503) }
        let url = "http://localhost:\(upstream.port)"
        for (rules, address) in [("family: ipv4", "127.0.0.1:\(upstream.port)"), ("all_addresses: false", nil)] {
            let config = GatewayConfig(
                endpoints: [url], upstream: "dns: { \(rules) }\nhealth_check: { interval: 100ms, unhealthy: 1 }")
            try withMartlet(config.text) { gateway throws in
                func line() -> LogLine? {
                    gateway.log.first { $0["event"] == "upstream endpoint unhealthy" && $0["reason"] == "status 503" }
                }
                try waitUntil("it is unhealthy") { line() != nil }
                #expect(line()?["endpoint"] == url && line()?["address"] == address)
            }
        }
        #expect(upstream.requests.allSatisfy { $0["host"] == "localhost:\(upstream.port)" })
    }
}
