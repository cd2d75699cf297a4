import Foundation
import MartletTesting
import Testing

/// Traces of requests: their spans at a collector, and the contexts that upstreams get.
@Suite struct `Tracing` {
    private static let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"
    private static let trusting = "workers: 1\ntrusted_proxies: [127.0.0.1/32]"

    private static func block(_ url: String, sample: String = "100%", more: String = "") -> String {
        "tracing: { otlp: \"\(url)\", sample: \(sample)\(more) }\n"
    }

    private static func config(
        _ upstreams: [String], _ collector: String, server: String = "workers: 1", upstream: String = "",
        sample: String = "100%", more: String = "", routes: String = GatewayConfig.open
    ) -> String {
        var config = GatewayConfig(endpoints: upstreams, upstream: upstream, server: server, routes: routes)
        config.more = block(collector, sample: sample, more: more)
        return config.text
    }

    private func parts(_ traceparent: String?) throws -> [String] {
        let parts = (traceparent ?? "").split(separator: "-").map(String.init)
        try #require(parts.count == 4 && parts[0] == "00", "\(traceparent ?? "none")")
        return parts
    }

    private func dropped(_ reason: String, _ gateway: Gateway) throws -> Int {
        let sample = "martlet_tracing_spans_dropped_total{reason=\"\(reason)\"} "
        let line = try gateway.askAdmin("/metrics").text.split(separator: "\n").first { $0.hasPrefix(sample) }
        return try #require(line.flatMap { Int($0.dropFirst(sample.count)) }, "no \(sample)")
    }

    // MARK: Spans

    @Test func `a request has a span, and its upstream is given that of the attempt`() throws {
        let (api, collector) = (try ScriptedUpstream(), try TraceCollector())
        try withMartlet(Self.config([api.url], collector.url)) { gateway throws in
            let fields = [("Traceparent", Self.parent + "-01"), ("tracestate", "a=1"), ("User-Agent", "test/1")]
            #expect(try gateway.get("/a/b?secret=1", fields).status == 200)
            let request = try api.onlyRequest()
            #expect(request.all("traceparent").count == 1 && request["tracestate"] == nil)
            let context = try parts(request["traceparent"])
            // An untrusted context is replaced.
            #expect(context[1] != "4bf92f3577b34da6a3ce929d0e0e4736" && context[3] == "01")
            let spans = try collector.trace(context[1])
            let server = try #require(spans.first { $0.kind == 2 })
            let client = try #require(spans.first { $0.kind == 3 })
            #expect(spans.count == 2 && server.name == "GET open" && client.name == "GET")
            #expect(server.parent == "" && client.parent == server.id && client.id == context[2])
            #expect(server["http.request.method"] == "GET" && server["http.route"] == "open")
            #expect(server["url.path"] == "/a/b" && server["url.scheme"] == "http")
            #expect(server["http.response.status_code"] == "200" && server["network.protocol.version"] == "1.1")
            #expect(server["client.address"] == "127.0.0.1" && server["user_agent.original"] == "test/1")
            #expect(server["martlet.request_id"] == request["X-Request-Id"])
            #expect(client["url.full"] == "\(api.url)/a/b" && client["server.port"] == String(api.port))
            #expect(client["http.response.status_code"] == "200" && client["http.request.resend_count"] == nil)
            #expect(!server.hasFailed && server.start <= client.start && client.end <= server.end)
            #expect(abs(Double(server.end) / 1e9 - Date().timeIntervalSince1970) < 60)
            let resource = try #require(collector.resources.first)
            #expect(resource["service.name"] == "martlet" && resource["service.version"]?.isEmpty == false)
            #expect(resource["service.instance.id"]?.isEmpty == false && collector.problems.isEmpty)
            try waitUntil("the line has the ID") { gateway.log.contains { $0["trace_id"] == context[1] } }
            #expect(!collector.spans.contains { $0.attributes.values.contains { $0.contains("secret") } })
        }
    }

    @Test func `what is rejected has a span, too, and another attempt is one of its own`() throws {
        let (bad, good, collector) = (
            try ScriptedUpstream { _ in throw TestFailure("reset") }, try ScriptedUpstream(), try TraceCollector()
        )
        let routes = "- { name: api, match: { path: /v1/** }, auth: none, upstream: api }"
        try withMartlet(Self.config([bad.url, good.url], collector.url, routes: routes)) { gateway throws in
            #expect(try gateway.get("/nowhere").status == 404)
            try waitUntil("a rejected request is there") { collector.spans.contains { $0["martlet.reason"] != nil } }
            let rejected = try #require(collector.spans.first { $0["http.response.status_code"] == "404" })
            #expect(rejected.name == "GET" && rejected["http.route"] == nil && !rejected.hasFailed)
            for _ in 0..<8 where bad.requests.isEmpty { #expect(try gateway.get("/v1/x").status == 200) }
            let first = try parts(try #require(bad.requests.first)["traceparent"])
            let spans = try collector.trace(first[1]).filter { $0.kind == 3 }
            let failed = try #require(spans.first { $0.id == first[2] })
            let second = try #require(spans.first { $0.id != first[2] })
            #expect(failed.hasFailed && failed["error.type"] != nil && failed["http.response.status_code"] == nil)
            #expect(second["http.request.resend_count"] == "1" && !second.hasFailed)
            #expect(good.requests.contains { $0["traceparent"] == "00-\(first[1])-\(second.id)-01" })
        }
    }

    @Test func `requests over HTTP/2 are traced`() throws {
        let (api, collector) = (try ScriptedUpstream(), try TraceCollector())
        try withMartlet(Self.config([api.url], collector.url)) { gateway throws in
            let caller = try HTTP2Caller(to: gateway)
            let streams = try (0..<8).map { try caller.ask("GET", "/\($0)") }
            for stream in streams { #expect(try caller.response(stream).status == 200) }
            try waitUntil("all are there") { collector.spans.count { $0.kind == 2 } == 8 }
            #expect(Set(collector.spans.map(\.trace)).count == 8)
            #expect(collector.spans.filter { $0.kind == 2 }.allSatisfy { $0["network.protocol.version"] == "2" })
        }
    }

    @Test func `a login has the account store as its child, and a verification, too`() throws {
        let collector = try TraceCollector()
        try withSignIn(more: Self.block(collector.url)) { stage throws in
            let tokens = try stage.passwordLogin()
            try waitUntil("the login is there") {
                collector.spans.contains { $0["url.path"] == "/auth/login/password" && $0.kind == 2 }
            }
            let login = try #require(collector.spans.first { $0["url.path"] == "/auth/login/password" })
            let children = collector.spans.filter { $0.trace == login.trace && $0.kind == 3 }
            #expect(children.contains { $0.name == "accounts" && $0["db.system.name"] == "sqlite" })
            let proof = try #require(collector.spans.first { $0.trace == login.trace && $0.name == "authenticate" })
            #expect(proof.parent == login.id && proof["martlet.provider"] == "password" && !proof.hasFailed)
            #expect(login["martlet.provider"] == "password")
            try waitUntil("the line names the provider") {
                stage.gateway.log.contains { $0["path"] == "/auth/login/password" && $0["provider"] == "password" }
            }
            _ = try Tokens(try stage.post("/auth/refresh", ["refresh_token": tokens.refresh]))
            let wrong = try stage.post("/auth/login/password", ["username": "alice", "password": "wrong"])
            #expect(wrong.status == 401)
            try waitUntil("the others are there") {
                collector.spans.contains { $0["url.path"] == "/auth/refresh" }
                    && collector.spans.contains { $0["http.response.status_code"] == "401" }
            }
            let others = collector.spans.filter {
                $0["url.path"] == "/auth/refresh" || $0["http.response.status_code"] == "401"
            }
            #expect(others.count == 2 && others.allSatisfy { $0["martlet.provider"] == "password" })
            let failed = collector.spans.filter { $0.name == "authenticate" && $0.hasFailed }
            #expect(failed.map { $0["error.type"] } == ["password.wrong_password"])
            #expect(try stage.status(with: tokens.access) == 200)
            let context = try parts(try #require(stage.upstream.requests.last)["traceparent"])
            let spans = try collector.trace(context[1])
            let server = try #require(spans.first { $0.kind == 2 })
            let verification = try #require(spans.first { $0.name == "authenticate" })
            #expect(verification.parent == server.id && verification["martlet.provider"] == "password")
            #expect(server["martlet.provider"] == "password" && server["user.hash"] == nil)
            let all = collector.spans.flatMap { [$0.name] + $0.attributes.values }
            #expect(!all.contains { $0.contains(tokens.subject) || $0.contains("alice") })
        }
    }

    @Test func `a caller is named by the hash of the log, where that is wanted`() throws {
        let (apple, api, collector) = (try AppleFixture(), try ScriptedUpstream(), try TraceCollector())
        var config = GatewayConfig(
            endpoints: [api.url], providers: apple.provider(), server: "workers: 1", routes: GatewayConfig.closed)
        config.more = Self.block(collector.url, more: ", subject: hash")
        let text = config.text.replacingOccurrences(
            of: "log: { level: debug,", with: "log: { subject: hash, subject_key: 0123456789abcdef, level: debug,")
        try withMartlet(text) { gateway throws in
            #expect(try gateway.get("/x", bearer(try apple.token())).status == 200)
            try waitUntil("the request is there") { collector.spans.contains { $0["user.hash"] != nil } }
            let hash = try #require(collector.spans.first { $0["user.hash"] != nil }?["user.hash"])
            #expect(hash.count == 32 && gateway.log.contains { $0["subject"] == hash })
        }
    }

    // MARK: Contexts

    @Test func `a trusted parent decides, and its state goes on`() throws {
        let (api, collector) = (try ScriptedUpstream(), try TraceCollector())
        let config = Self.config([api.url], collector.url, server: Self.trusting, sample: "0")
        try withMartlet(config) { gateway throws in
            let state = [("Tracestate", "a=1"), ("tracestate", "b=2")]
            #expect(try gateway.get("/sampled", [("traceparent", Self.parent + "-01")] + state).status == 200)
            #expect(try gateway.get("/not", [("traceparent", Self.parent + "-00")] + state).status == 200)
            #expect(try gateway.get("/bad", [("traceparent", Self.parent + "-01"), ("tracestate", "A")]).status == 200)
            let twice = [("traceparent", Self.parent + "-01"), ("traceparent", Self.parent + "-01")]
            for fields in [[], [("traceparent", Self.parent)], twice] {
                #expect(try gateway.get("/none", fields + [("tracestate", "a=1")]).status == 200)
            }
            let contexts = try api.requests.map { try parts($0["traceparent"]) }
            #expect(
                contexts.prefix(3).map { $0[1] } == [String](repeating: "4bf92f3577b34da6a3ce929d0e0e4736", count: 3))
            #expect(contexts.map { $0[3] } == ["01", "00", "01", "00", "00", "00"])
            #expect(api.requests.map { $0["tracestate"] } == ["a=1,b=2", "a=1,b=2", nil, nil, nil, nil])
            #expect(Set(contexts.map { $0[2] }).count == 6 && !contexts.contains { $0[2] == "00f067aa0ba902b7" })
            #expect(contexts.dropFirst(3).allSatisfy { $0[1] != contexts[0][1] })
            try waitUntil("both are there") { collector.spans.count { $0.kind == 2 } == 2 }
            let servers = collector.spans.filter { $0.kind == 2 }
            #expect(servers.allSatisfy { $0.parent == "00f067aa0ba902b7" })
            #expect(Set(servers.map(\.state)) == ["a=1,b=2", ""])
            #expect(Set(collector.spans.map(\.id)).count == 4)
        }
    }

    @Test func `without tracing contexts pass untouched, and a reload turns it on and off`() throws {
        let (api, collector) = (try ScriptedUpstream(), try TraceCollector())
        let off = GatewayConfig(endpoints: [api.url], server: "workers: 1").text
        let fields = [("traceparent", "anything"), ("tracestate", "AT ALL")]
        try withMartlet(off) { gateway throws in
            func last() throws -> HTTPMessage {
                #expect(try gateway.get("/x", fields).status == 200)
                return try #require(api.requests.last)
            }
            #expect(try last()["traceparent"] == "anything" && last()["tracestate"] == "AT ALL")
            #expect(!(try gateway.askAdmin("/metrics").text.contains("martlet_tracing")))
            try gateway.reload(off + Self.block(collector.url))
            try waitUntil("it is on") { try last()["traceparent"] != "anything" }
            try waitUntil("a trace is there") { !collector.spans.isEmpty }
            try gateway.reload(off)
            try waitUntil("it is off") { try last()["traceparent"] == "anything" }
        }
    }

    // MARK: Collectors

    @Test(arguments: ["hangs", "html", "absent"])
    func `a collector that is none concerns no request`(_ kind: String) throws {
        let api = try ScriptedUpstream()
        let collector = try ScriptedUpstream { exchange in
            if kind == "hangs" { _ = exchange.waitForEnd() }
            try exchange.respond(200, [("Content-Type", "text/html")], body: "<html>hello</html>")
        }
        let url = collector.url
        if kind == "absent" { collector.stop() }
        try withMartlet(Self.config([api.url], url)) { gateway throws in
            let client = try gateway.connect()
            for number in 0..<200 { #expect(try client.exchange("GET", "/\(number)").status == 200) }
            if kind == "html" {
                try waitUntil("they are counted") { try dropped("rejected", gateway) >= 400 }
                #expect(gateway.log.contains { $0["event"] == "traces not sent" && $0["code"] == "tracing.rejected" })
            }
            let start = Stopwatch()
            gateway.process.kill(SIGTERM)
            _ = try gateway.process.wait(within: .seconds(15))
            #expect(start.undisturbed < .seconds(8))
            if kind == "absent" {
                #expect(
                    gateway.log.contains { $0["event"] == "traces not sent" && $0["code"] == "tracing.unavailable" })
            }
        }
        collector.stop()
    }

    @Test func `what waits is sent at the end`() throws {
        let (api, collector) = (try ScriptedUpstream(), try TraceCollector())
        try withMartlet(Self.config([api.url], collector.url)) { gateway throws in
            for number in 0..<20 { #expect(try gateway.get("/\(number)").status == 200) }
            try gateway.stop()
            #expect(collector.spans.count { $0.kind == 2 } == 20)
        }
    }

    // MARK: Metrics

    @Test func `OpenMetrics has the traces of sampled requests as examples`() throws {
        let (api, collector) = (try ScriptedUpstream(), try TraceCollector())
        try withMartlet(Self.config([api.url], collector.url)) { gateway throws in
            #expect(try gateway.get("/x").status == 200)
            let trace = try parts(try api.onlyRequest()["traceparent"])[1]
            let client = try HTTPClient(to: gateway.admin)
            let page = try client.exchange(
                "GET", "/metrics", [("Accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")])
            #expect(page["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8")
            #expect(page.text.hasSuffix("\n# EOF\n"))
            let examples = page.text.split(separator: "\n").filter { $0.contains(" # {") }
            #expect(examples.count == 1 && examples[0].hasPrefix("martlet_proxy_request_duration_seconds_bucket{"))
            #expect(examples.first?.contains(" # {trace_id=\"\(trace)\"} ") == true)
            #expect(page.text.contains("\n# TYPE martlet_proxy_requests counter\nmartlet_proxy_requests_total{"))
            let plain = try client.exchange("GET", "/metrics", [("Accept", "text/plain")])
            #expect(plain["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
            #expect(!plain.text.contains("trace_id") && !plain.text.contains("# EOF"))
        }
    }
}
