import Foundation
import MartletTesting
import Testing

/// What spans say about clients, and the traces of other protocols than HTTP/1.1.
@Suite struct `Traced clients` {
    private static let agent = ("User-Agent", "test/1")

    private static func more(_ collector: TraceCollector) -> String {
        "tracing: { otlp: \"\(collector.url)\", sample: 100% }\n"
    }

    private static func server(_ collector: TraceCollector, _ path: String) throws -> TraceCollector.Span {
        try waitUntil("the span of \(path) is there") { collector.spans.contains { $0["url.path"] == path } }
        return try #require(collector.spans.first { $0["url.path"] == path && $0.kind == 2 })
    }

    @Test func `what the gateway responds to itself names its client`() throws {
        let collector = try TraceCollector()
        let routes = """
            - { name: away, match: { path: /away }, auth: none, redirect: { to: "https://a.example/", status: 302 } }
            - { name: small, match: { path: /small }, auth: none, upstream: api, limits: { body_bytes: 1B } }
            - { name: once, match: { path: /once }, auth: none, upstream: api, limits: { rate: [few] } }
            - { name: read, match: { path: /read, methods: [GET] }, auth: none, upstream: api }
            - { name: closed, match: { path: /v1/** }, auth: { providers: [apple] }, upstream: api }
            """
        let more = "rate_limits: { few: { key: address, rate: 1/h, burst: 1 } }\n" + Self.more(collector)
        try withAppleGateway(routes: routes, server: "workers: 1", more: more) { gateway, _, _ in
            let responses: [(String, String, [(String, String)], Int)] = [
                ("GET", "/nowhere", [], 404), ("POST", "/read", [], 405), ("GET", "/away", [], 302),
                ("GET", "/v1/none", [], 401), ("GET", "/v1/bad", bearer("e30.e30.e30"), 401), ("GET", "/%zz", [], 400),
                ("POST", "/small", [("Content-Length", "2")], 413), ("GET", "/auth/session", [], 401),
            ]
            for (method, path, fields, status) in responses {
                let body: [UInt8] = path == "/small" ? [1, 2] : []
                let own = body.isEmpty ? fields : []
                let response = try gateway.exchange(method, path, own + [Self.agent], body: body)
                #expect(response.status == status, "\(path): \(response)")
                let span = try Self.server(collector, path)
                #expect(span["user_agent.original"] == "test/1", "\(path): \(span)")
            }
            #expect(try gateway.get("/once", [Self.agent]).status == 200)
            #expect(try gateway.get("/once", [Self.agent]).status == 429)
            try waitUntil("both are there") { collector.spans.count { $0["url.path"] == "/once" } == 2 }
            let limited = collector.spans.filter { $0["url.path"] == "/once" }
            #expect(limited.allSatisfy { $0["user_agent.original"] == "test/1" })
        }
    }

    @Test func `the URL is that of the client, as a trusted proxy says`() throws {
        let (api, collector) = (try ScriptedUpstream(), try TraceCollector())
        for isTrusted in [true, false] {
            var config = GatewayConfig(
                endpoints: [api.url], server: "workers: 1" + (isTrusted ? "\ntrusted_proxies: [127.0.0.1/32]" : ""),
                routes: "- { name: api, match: { path: /v1/** }, auth: none, upstream: api }")
            config.more = Self.more(collector)
            try withMartlet(config.text) { gateway throws in
                let fields = [
                    ("X-Forwarded-Proto", "HTTPS"), ("X-Forwarded-Host", "shop.example:8443"),
                    ("X-Forwarded-For", "203.0.113.9"),
                ]
                for path in ["/v1/\(isTrusted)", "/no/\(isTrusted)"] {
                    _ = try gateway.get(path, fields)
                    let span = try Self.server(collector, path)
                    #expect(span["url.scheme"] == (isTrusted ? "https" : "http"), "\(span)")
                    #expect(span["server.address"] == (isTrusted ? "shop.example" : "localhost"), "\(span)")
                    #expect(span["server.port"] == (isTrusted ? "8443" : nil), "\(span)")
                }
                let raw = "PURGE /v1/purge/\(isTrusted) HTTP/1.1\r\nHost: [::1]:81\r\n\r\n"
                _ = try gateway.raw(raw)
                let span = try Self.server(collector, "/v1/purge/\(isTrusted)")
                #expect(span["server.address"] == "::1" && span["server.port"] == "81", "\(span)")
                #expect(span["http.request.method"] == "_OTHER" && span["http.request.method_original"] == "PURGE")
            }
        }
    }

    @Test func `a tunnel is traced until its close, or until the gateway stops`() throws {
        let (collector, echo) = (try TraceCollector(), EchoScript())
        let api = try ScriptedUpstream(echo.script)
        var config = GatewayConfig(endpoints: [api.url], server: "workers: 1\ntimeouts: { drain: 3s }")
        config.more = Self.more(collector)
        try withMartlet(config.text) { gateway throws in
            let first = try gateway.webSocket("/chat/1", [Self.agent])
            try first.expectEcho("hello")
            #expect(!collector.spans.contains { $0["url.path"] == "/chat/1" })
            try first.send(.close(1000))
            try first.expectClose(1000)
            let ended = try Self.server(collector, "/chat/1")
            #expect(ended["http.response.status_code"] == "101" && ended["user_agent.original"] == "test/1")
            let context = api.requests.first?["traceparent"] ?? ""
            let client = try #require(collector.spans.first { $0.trace == ended.trace && $0.kind == 3 })
            #expect(client["http.response.status_code"] == "101" && !client.hasFailed && client.parent == ended.id)
            #expect(context == "00-\(ended.trace)-\(client.id)-01")
            let second = try gateway.webSocket("/chat/2")
            try second.expectEcho("hello")
            gateway.process.kill(SIGTERM)
            try second.expectClose(1001, "gateway is stopping")
            #expect(try gateway.process.wait(within: .seconds(10)) == .exited(0))
            let stopped = try Self.server(collector, "/chat/2")
            let last = try #require(collector.spans.first { $0.trace == stopped.trace && $0.kind == 3 })
            #expect(stopped["http.response.status_code"] == "101" && last["http.response.status_code"] == "101")
        }
    }

    @Test func `a call of gRPC is traced, with the context in the metadata of its upstream`() throws {
        let (api, collector) = (try GRPCUpstream(), try TraceCollector())
        var config = GatewayConfig(endpoints: [api.url], server: "workers: 1")
        config.more = Self.more(collector)
        try withMartlet(config.text) { gateway throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let stream = try peer.request(call("/echo.E/Echo", ["User-Agent: grpc/1"]), ends: false)
            try peer.send(stream, message("hello"))
            try peer.end(stream)
            #expect(try peer.outcome(of: stream).trailers.contains("grpc-status: 0"))
            let server = try Self.server(collector, "/echo.E/Echo")
            #expect(server["network.protocol.version"] == "2" && server["http.response.status_code"] == "200")
            #expect(server["user_agent.original"] == "grpc/1" && server["http.request.method"] == "POST")
            let client = try #require(collector.spans.first { $0.trace == server.trace && $0.kind == 3 })
            #expect(client["network.protocol.version"] == "2" && client.parent == server.id)
            let head = try #require(api.heads.value.first)
            #expect(head.contains("traceparent: 00-\(server.trace)-\(client.id)-01\r\n"), "\(head)")
        }
    }

    @Test func `a check of a proxy is traced as the request that it describes`() throws {
        let collector = try TraceCollector()
        let routes = "- { name: closed, match: { path: /v1/** }, auth: { providers: [apple] }, upstream: api }"
        try withAppleGateway(
            routes: routes, server: "workers: 1\ntrusted_proxies: [127.0.0.1/32]", more: Self.more(collector)
        ) { gateway, _, apple in
            func check(_ uri: String, _ more: [(String, String)]) throws -> HTTPMessage {
                let fields = [
                    ("X-Forwarded-Method", "GET"), ("X-Forwarded-Proto", "https"), Self.agent,
                    ("X-Forwarded-Host", "api.example.com"), ("X-Forwarded-Uri", uri),
                ]
                return try gateway.get("/auth/check", fields + more)
            }
            #expect(try check("/v1/a", bearer(try apple.token())).status == 200)
            #expect(try check("/v1/b", []).status == 401)
            for path in ["/v1/a", "/v1/b"] {
                let span = try Self.server(collector, path)
                #expect(span["martlet.check"] == "true" && span["http.route"] == "closed", "\(span)")
                #expect(span["url.scheme"] == "https" && span["server.address"] == "api.example.com", "\(span)")
                #expect(span["user_agent.original"] == "test/1", "\(span)")
                #expect(span["http.response.status_code"] == (path == "/v1/a" ? "200" : "401"))
            }
            #expect(!collector.spans.contains { $0.kind == 3 && $0["martlet.upstream"] != nil })
        }
    }
}
