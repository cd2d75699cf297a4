import Glibc
import MartletTesting
import Testing

/// What `log:` says, at the start and after a reload.
@Suite struct `Log settings` {
    private static let written = "log: { level: debug, format: json }"

    /// A configuration with ports that stay, so that a reload is recognized by what it changes.
    private static func config(_ log: String, _ upstream: ScriptedUpstream) throws -> (Gateway) -> String {
        { gateway in
            Lifecycle.config(upstream, path: "/a", for: gateway)
                .replacing(written, with: "log: { \(log) }")
        }
    }

    private static func lines(_ gateway: Gateway, since mark: Int) -> String {
        String(gateway.process.output.dropFirst(mark))
    }

    @Test func `SIGHUP takes over the level and the format, on both listeners`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(try Lifecycle.fixedPorts(upstream, path: "/a").text) { gateway throws in
            #expect(try gateway.get("/a").status == 200)
            try gateway.reload(try Self.config("level: error, format: text", upstream)(gateway))
            try waitUntil("access lines are text") {
                _ = try gateway.get("/a")
                return gateway.process.output.contains(" GET localhost/a 200 ok")
                    && gateway.process.output.hasSuffix("\n")
            }
            var mark = gateway.process.output.count
            #expect(try gateway.askAdmin("/livez").status == 200)
            try waitUntil("the admin listener writes text, too") {
                Self.lines(gateway, since: mark).contains("/livez 200 ok")
            }
            // What is below the level is not written any more: a reload tells of itself as `info`.
            mark = gateway.process.output.count
            try gateway.reload(try Self.config("level: error, format: text", upstream)(gateway))
            try waitUntil("it is reloaded") {
                try gateway.askAdmin("/metrics").text.contains("martlet_server_reloads_total{result=\"success\"} 2\n")
            }
            #expect(!Self.lines(gateway, since: mark).contains("configuration reloaded"))
            try gateway.reload(try Self.config("level: info, format: json", upstream)(gateway))
            try waitUntil("it says so again, as JSON") {
                gateway.log.contains { $0["event"] == "configuration reloaded" && $0["level"] == "info" }
            }
            mark = gateway.process.output.count
            #expect(try gateway.get("/a").status == 200)
            try waitUntil("access lines are JSON") { Self.lines(gateway, since: mark).contains("\"path\":\"/a\"") }
        }
    }

    @Test func `debug names each check of a credential that failed, and nothing else does`() throws {
        let apple = try AppleFixture()
        let upstream = try ScriptedUpstream()
        let config = GatewayConfig(
            endpoints: [upstream.url], providers: apple.provider(), routes: GatewayConfig.closed)
        for level in ["debug", "info"] {
            try withMartlet(config.text.replacing("level: debug", with: "level: \(level)")) { gateway throws in
                let token = try apple.token { $0.claims["aud"] = "\"com.other.app\"" }
                let response = try gateway.get("/closed", bearer(token))
                #expect(response.status == 401)
                guard level == "debug" else {
                    #expect(!gateway.everything.contains("credential rejected"))
                    return
                }
                try waitUntil("the check is named") {
                    gateway.log.contains { line in
                        line["event"] == "credential check failed" && line["level"] == "debug"
                            && line["check"] == "audience"
                            && line["code"] == "apple.bad_audience" && line["provider"] == "apple"
                            && line["request_id"] == response["X-Request-Id"]
                    }
                }
                #expect(
                    gateway.log.contains {
                        $0["event"] == "credential rejected" && $0["code"] == "apple.bad_audience"
                    })
                #expect(!gateway.everything.contains(token))
            }
        }
    }

    @Test func `debug names attempts that are repeated`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        let gone = try refusedPort()
        let config = GatewayConfig(endpoints: ["http://127.0.0.1:\(gone)", upstream.url], server: "workers: 1")
        try withMartlet(config.text) { gateway throws in
            for _ in 0..<4 { #expect(try gateway.get("/").status == 200) }
            try waitUntil("the line is there") {
                gateway.log.contains {
                    $0["event"] == "retrying upstream" && $0["code"] == "upstream.refused"
                        && $0["upstream"]?.contains(":\(gone)") == true
                }
            }
        }
    }

    @Test func `debug names refused handshakes and PROXY headers`() throws {
        let certificates = try TLSCertificates.shared.get()
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(endpoints: [upstream.url], server: "trusted_proxies: [192.0.2.0/24]")
        config.listen = certificates.listener() + "\n- { address: 127.0.0.1:0, proxy_protocol: true }"
        try withMartlet(config.text) { gateway throws in
            for endpoint in gateway.endpoints {
                let socket = try RawSocket(connectingTo: endpoint)
                try? socket.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(socket.isEnded(within: .seconds(5)))
            }
            for (event, code) in [
                ("TLS handshake failed", "tls."), ("PROXY header rejected", "proxy_protocol.untrusted_peer"),
            ] {
                try waitUntil(event) {
                    gateway.log.contains {
                        $0["event"] == event && $0["client"] == "127.0.0.1" && $0["code"]?.hasPrefix(code) == true
                    }
                }
            }
        }
    }
}
