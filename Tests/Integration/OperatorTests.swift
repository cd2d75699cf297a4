import Foundation
import Glibc
import MartletTesting
import Testing

/// What operators and balancers ask a running gateway for.
@Suite struct `Operators` {
    private static func post(_ gateway: Gateway, _ fields: [(String, String)] = []) throws -> HTTPMessage {
        try HTTPClient(to: gateway.operators).exchange("POST", "/reload", fields + [("Content-Length", "0")])
    }

    // MARK: Reload

    @Test func `reload waits for the outcome and tells it`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(try Lifecycle.fixedPorts(upstream, path: "/a").text) { gateway throws in
            let config = gateway.folder.path + "/config.yaml"
            try gateway.folder.write(Lifecycle.config(upstream, path: "/b", for: gateway), to: "config.yaml")
            let good = try run(try Executable.martlet(), ["reload", "--config", config])
            #expect(good.ending == .exited(0) && good.output == "reloaded\n", "\(good)")
            #expect(try gateway.get("/b").status == 200)
            let bad = Lifecycle.config(upstream, path: "/c", for: gateway) + "unknown_key: 1\nanother_one: 2\n"
            try gateway.folder.write(bad, to: "config.yaml")
            let refused = try run(try Executable.martlet(), ["reload", "--address", "\(gateway.operators)"])
            #expect(refused.ending == .exited(78), "\(refused)")
            #expect(refused.errorOutput.contains("unknown_key") && refused.errorOutput.contains("another_one"))
            #expect(try gateway.get("/b").status == 200 && gateway.get("/c").status == 404)
            // What the file alone cannot tell: the address is taken.
            let other = try Listener(on: .loopback(0))
            let taken = Lifecycle.config(upstream, path: "/c", for: gateway)
                .replacing(
                    "- address: \(gateway.endpoint)",
                    with: "- address: \(gateway.endpoint)\n    - address: \(other.endpoint)")
            try gateway.folder.write(taken, to: "config.yaml")
            let late = try run(try Executable.martlet(), ["reload", "--config", config])
            #expect(late.ending == .exited(78) && late.errorOutput.contains("server.address_in_use"), "\(late)")
        }
        let unreachable = try run(try Executable.martlet(), ["reload", "--address", "127.0.0.1:\(try refusedPort())"])
        #expect(unreachable.ending == .exited(69), "\(unreachable)")
        #expect(try run(try Executable.martlet(), ["reload", "x"]).ending == .exited(64))
    }

    @Test func `no page in a browser can ask for it`() throws {
        try withOpenGateway { gateway, _ throws in
            for field in [
                ("Origin", "http://localhost:9901"), ("Origin", "null"), ("Sec-Fetch-Site", "same-origin"),
                ("Content-Type", "text/plain; charset=utf-8"), ("Content-Type", "application/x-www-form-urlencoded"),
            ] {
                expectRejection(try Self.post(gateway, [field]), 403, "cross_site", "\(field)")
            }
            let got = try gateway.askAdmin("/reload")
            expectRejection(got, 405, "method_not_allowed")
            #expect(got["Allow"] == "POST")
            #expect(!gateway.everything.contains("configuration reloaded"))
            let response = try Self.post(gateway)
            #expect(response.status == 200 && response.member("status") == "reloaded", "\(response)")
        }
    }

    // MARK: Admin listener

    @Test func `the admin listener accepts its own names alone`() throws {
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(endpoints: [upstream.url])
        config.admin = "address: 127.0.0.1:0\nhosts: [gw.example.com]"
        try withMartlet(config.text) { gateway throws in
            for path in ["/", "/metrics", "/readyz", "/livez"] {
                let response = try HTTPClient(to: gateway.admin).exchange("GET", path, [("Host", "attacker.example")])
                expectRejection(response, 421, "host_not_allowed", path)
            }
            for host in ["localhost", "\(gateway.admin)", "gw.example.com:9901"] {
                #expect(try HTTPClient(to: gateway.admin).exchange("GET", "/readyz", [("Host", host)]).status == 200)
            }
            expectRejection(try gateway.askAdmin("/nothing"), 404, "not_found")
            try waitUntil("the log has the reasons") {
                ["admin.host_not_allowed", "admin.not_found"].allSatisfy { reason in
                    gateway.log.contains { $0["event"] == "request" && $0["reason"] == reason }
                }
            }
        }
    }

    @Test func `health takes only a gateway's word`() throws {
        for (body, code) in [
            ("ok", 69), ("{\"status\":\"ready\"}", 69), ("{\"status\":\"fine\",\"checks\":[]}", 69),
            ("{\"status\":\"unavailable\",\"checks\":[]}", 69), ("{\"status\":\"ready\",\"checks\":[]}", 0),
        ] {
            let other = try ScriptedUpstream {
                try $0.respond(200, body: body)
                $0.closes = true
            }
            let result = try run(try Executable.martlet(), ["health", "--address", "\(other.endpoint)"])
            #expect(result.ending == .exited(Int32(code)), "\(body): \(result)")
            #expect(result.errorOutput.contains("server.not_ours") == (code != 0), "\(body): \(result)")
        }
    }

    // MARK: Balancers

    @Test func `public listeners tell whether the gateway is ready, and nothing else`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "upstream") }
        var config = GatewayConfig(endpoints: [upstream.url], server: "health: { path: /healthz }")
        config.listen = """
            - address: 127.0.0.1:0
            - { address: 127.0.0.1:0, health: { path: /up }, redirect_to_https: true }
            """
        try withMartlet(config.text) { gateway throws in
            let (first, second) = (gateway.endpoints[0], gateway.endpoints[1])
            func ask(_ endpoint: Endpoint, _ path: String, _ method: String = "GET") throws -> HTTPMessage {
                try HTTPClient(to: endpoint).exchange(method, path)
            }
            for (endpoint, path) in [(first, "/healthz"), (first, "/healthz?x=1"), (second, "/up")] {
                let response = try ask(endpoint, path)
                #expect(response.status == 200 && response.text == "ready\n", "\(path): \(response)")
                #expect(response["Cache-Control"] == "no-store")
            }
            #expect(try ask(first, "/healthz", "HEAD").status == 200)
            #expect(try ask(first, "/healthz", "POST").status == 405)
            #expect(try ask(first, "/healthz/x").text == "upstream" && ask(first, "/up").text == "upstream")
            #expect(try ask(second, "/healthz").status == 308)
        }
    }

    @Test func `a shutdown delay turns balancers away before it turns clients away`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        let server = "health: { path: /healthz }\ntimeouts: { shutdown_delay: 4s }"
        let gateway = try Gateway(GatewayConfig(endpoints: [upstream.url], server: server).text)
        #expect(try gateway.get("/healthz").status == 200)
        let stopwatch = Stopwatch()
        gateway.process.kill(SIGTERM)
        try waitUntil("it is not ready", within: .seconds(1)) { try gateway.askAdmin("/readyz").status == 503 }
        let health = try gateway.get("/healthz")
        #expect(health.status == 503 && health.text == "not ready\n" && health["Retry-After"] == "1", "\(health)")
        while stopwatch.elapsed < .milliseconds(1400) { #expect(try gateway.get("/a").status == 200) }
        #expect(try gateway.process.wait(within: .seconds(10)) == .exited(0))
        #expect(stopwatch.elapsed > .milliseconds(3900))
    }

    @Test func `a trap shows no memory`() throws {
        let upstream = try ScriptedUpstream()
        // The tests themselves run with a backtracer.
        let gateway = try Gateway(
            GatewayConfig(endpoints: [upstream.url]).text, environment: ["SWIFT_BACKTRACE": ""])
        gateway.process.kill(SIGILL)
        #expect(try gateway.process.wait(within: .seconds(5)) == .signalled(SIGILL))
        #expect(gateway.process.errorOutput.isEmpty, "\(gateway.process.errorOutput)")
    }
}
