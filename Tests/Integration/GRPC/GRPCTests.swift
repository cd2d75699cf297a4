import MartletTesting
import Testing

/// gRPC from end to end, in raw messages: h2c at either side.
@Suite struct `gRPC` {
    private func withGateway(
        routes: String = GatewayConfig.closed, upstream more: String = "", server: String = "",
        _ body: (Gateway, GRPCUpstream, AppleFixture) throws -> Void
    ) throws {
        let apple = try AppleFixture()
        let upstream = try GRPCUpstream()
        let config = GatewayConfig(
            endpoints: [upstream.url], upstream: more, providers: apple.provider(""), server: server, routes: routes)
        try withMartlet(config.text) { try body($0, upstream, apple) }
    }

    @Test func `a call passes with metadata, deadline, trailers and the caller's identity`() throws {
        try withGateway { gateway, upstream, apple throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let fields = [
                "Authorization: Bearer \(try apple.token())", "X-Auth-Subject: root", "grpc-timeout: 7500m",
                "trace-bin: AQID", "grpc-encoding: identity",
            ]
            let stream = try peer.request(call("/echo.E/Echo", fields), ends: false)
            try peer.send(stream, message("hello"))
            try peer.end(stream)
            let response = try peer.outcome(of: stream)
            #expect(response.head.hasPrefix("HTTP/1.1 200") && response.value(of: "x-start") == "yes")
            #expect(response.messages == [Array("hello!".utf8)] && response.reset == nil)
            #expect(response.trailers.contains("grpc-status: 0") && response.trailers.contains("x-end: yes"))
            let head = try #require(upstream.heads.value.first).lowercased()
            #expect(head.contains("\r\nx-auth-subject: apple:") && !head.contains("root"))
            #expect(!head.contains("\r\nauthorization:"))
            for field in ["grpc-timeout: 7500m", "trace-bin: aqid", "content-type: application/grpc"] {
                #expect(head.contains("\r\n\(field)\r\n"), "\(field)")
            }
        }
    }

    @Test func `an error of the upstream's own is its own`() throws {
        try withGateway { gateway, _, _ throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let stream = try peer.request(call("/public/Fail"), ends: true)
            let response = try peer.outcome(of: stream)
            #expect(response.trailers.contains("grpc-status: 9"))
            #expect(response.trailers.contains("grpc-message: not%20now"))
        }
    }

    @Test func `messages of a call both ways do not wait for each other`() throws {
        try withGateway { gateway, _, _ throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let streams = try (0..<3).map { _ in try peer.request(call("/public/Echo"), ends: false) }
            for round in 0..<10 {
                for stream in streams {
                    try peer.send(stream, message("\(stream) \(round)"))
                    try peer.wait(for: "the reply to message \(round)") {
                        peer.streams[stream]?.messages.count == round + 1
                    }
                }
            }
            for stream in streams {
                try peer.end(stream)
                let response = try peer.outcome(of: stream)
                #expect(response.messages == (0..<10).map { Array("\(stream) \($0)!".utf8) })
                #expect(response.value(of: "grpc-status") == "0")
            }
        }
    }

    @Test func `a call may send more than a body may have, and be slow about it, unless its route says otherwise`()
        throws
    {
        let routes = """
            - { name: small, match: { path: /small/** }, auth: none, limits: { body_bytes: 1KiB }, upstream: api }
            - { name: open, match: { path: /** }, auth: none, upstream: api }
            """
        let server = "limits: { body_bytes: 4KiB }\ntimeouts: { body_idle: 1s }"
        try withGateway(routes: routes, server: server) { gateway, _, _ throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let stream = try peer.request(call("/open/Echo"), ends: false)
            try peer.send(stream, message(String(repeating: "x", count: 10_000)))
            pause(.milliseconds(1600))
            try peer.send(stream, message("still here"))
            try peer.end(stream)
            #expect(try peer.outcome(of: stream).messages.last == Array("still here!".utf8))
            let small = try peer.request(call("/small/Echo", ["Content-Length: 2000"]), ends: false)
            #expect(try peer.outcome(of: small).value(of: "grpc-status") == "8")
        }
    }

    @Test func `a rejection is a response that gRPC understands`() throws {
        let dead = try refusedPort()
        let silent = try Listener(on: .loopback(0))
        let routes = """
            - { name: dead, match: { path: /dead/** }, auth: none, upstream: dead }
            - { name: silent, match: { path: /silent/** }, auth: none, upstream: silent }
            - { name: get, match: { path: /get/**, methods: [GET] }, auth: none, upstream: api }
            - { name: denied, match: { path: /denied/** }, auth: { providers: [apple] }, authorize: [{ claim: admin, equals: true }], upstream: api }
            - { name: closed, match: { path: /closed/** }, auth: { providers: [apple] }, upstream: api }
            """
        let apple = try AppleFixture()
        let upstream = try GRPCUpstream()
        var config = GatewayConfig(endpoints: [upstream.url], providers: apple.provider(""), routes: routes)
        config.upstreams +=
            "dead: { endpoints: [\"h2c://127.0.0.1:\(dead)\"] }\n"
            + "silent: { endpoints: [\"h2c://\(silent.endpoint)\"], timeouts: { response_head: 1s } }\n"
        try withMartlet(config.text) { gateway in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let token = "Authorization: Bearer \(try apple.token())"
            for (method, fields, status, code) in [
                ("/closed/x", [], "16", "credential_missing"),
                ("/closed/x", ["Authorization: Bearer e30.e30.e30"], "16", "credential_invalid"),
                ("/denied/x", [token], "7", "not_allowed"), ("/dead/x", [], "14", "upstream_unavailable"),
                ("/silent/x", [], "4", "upstream_timeout"), ("/get/x", [], "12", "method_not_allowed"),
                ("/nowhere/x", [], "12", "no_route"), ("/closed/a//b", [token], "3", "request_invalid"),
                ("/closed/" + String(repeating: "a", count: 9000), [], "8", "request_too_large"),
                ("/closed/x", ["X-Large: " + String(repeating: "a", count: 20_000)], "8", "request_too_large"),
            ] {
                let response = try peer.outcome(of: try peer.request(call(method, fields), ends: true))
                #expect(response.head.hasPrefix("HTTP/1.1 200"), "\(method)")
                #expect(response.value(of: "content-type") == "application/grpc", "\(method)")
                #expect(response.value(of: "grpc-status") == status, "\(method)")
                #expect(response.value(of: "grpc-message") == code, "\(method)")
                #expect(response.body.isEmpty && response.reset == nil, "\(method)")
            }
            // Others on the same connection get what they always get.
            let other = ["GET /closed/x HTTP/1.1", "Host: localhost", "Content-Type: text/plain"]
            let plain = try peer.outcome(of: try peer.request(other, ends: true))
            #expect(plain.head.hasPrefix("HTTP/1.1 401") && plain.value(of: "grpc-status") == nil)
        }
    }

    @Test func `a call that outlives its token ends with status 16, and at the upstream`() throws {
        try withGateway { gateway, upstream, apple throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let token = try apple.token { $0.claims["exp"] = JSONText(unixNow() + 2) }
            let stream = try peer.request(call("/closed/Silent", ["Authorization: Bearer \(token)"]), ends: false)
            let other = try peer.request(call("/public/Echo"), ends: false)
            let start = Stopwatch()
            let response = try peer.outcome(of: stream)
            #expect(start.undisturbed < .milliseconds(3200))
            #expect(response.value(of: "grpc-status") == "16")
            #expect(response.value(of: "grpc-message") == "credential_invalid")
            try waitUntil("the upstream hears of it", within: .seconds(2)) { upstream.resets.value == 1 }
            try peer.send(other, message("still"))
            try peer.end(other)
            #expect(try peer.outcome(of: other).value(of: "grpc-status") == "0")
        }
    }
}
