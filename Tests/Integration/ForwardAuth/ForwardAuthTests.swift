import MartletTesting
import Testing

/// The endpoint where a proxy asks whether a request may pass.
@Suite struct `Checks of a proxy` {
    private static let trusting = "trusted_proxies: [127.0.0.1/32]"
    private static let routes = """
        - { name: public, match: { path: /public/** }, auth: none }
        - { name: named, match: { path: /named/** }, auth: { providers: [apple] }, headers: { set: { X-User: { attribute: subject } } } }
        - { name: read, match: { path: /read/**, methods: [GET] }, auth: none, upstream: api }
        - { name: closed, match: { path: /v1/** }, auth: { providers: [apple] }, upstream: api }
        """

    /// The fields of the scheme `forwarded`.
    private static func forwarded(_ method: String, _ uri: String) -> [(String, String)] {
        [
            ("X-Forwarded-Method", method), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "api.example.com"),
            ("X-Forwarded-Uri", uri), ("X-Forwarded-For", "203.0.113.9"),
        ]
    }

    private static func withChecks(
        server: String = trusting, routes: String = routes, more: String = "",
        _ body: (Gateway, ScriptedUpstream, AppleFixture) throws -> Void
    ) throws {
        try withAppleGateway(routes: routes, server: server, more: more) { gateway, upstream, apple throws in
            try body(gateway, upstream, apple)
            #expect(upstream.requests.isEmpty)
        }
    }

    /// Checks a response that lets a request pass.
    private static func expectAllowed(
        _ response: HTTPMessage, subject: String = "", user: String = "", at location: SourceLocation = #_sourceLocation
    ) {
        let note = Comment(rawValue: "\(response)")
        #expect(response.status == 200 && response.body.isEmpty, note, sourceLocation: location)
        #expect(response["Cache-Control"] == "no-store", note, sourceLocation: location)
        for (name, value) in [("X-Auth-Subject", subject), ("X-User", user)] {
            #expect(response.all(name) == [value], note, sourceLocation: location)
        }
        #expect(response.all("X-Auth-Email").count == 1, note, sourceLocation: location)
        #expect(response.all("X-Auth-Assertion") == [""], note, sourceLocation: location)
    }

    @Test func `are decided like the request, in each of the schemes`() throws {
        try Self.withChecks { gateway, _, apple throws in
            let subject = "apple:001234.0123456789abcdef0123456789abcdef.0001"
            let token = bearer(try apple.token())
            let original = [("X-Original-URI", "/v1/x?a=b"), ("X-Original-Method", "POST")]
            for fields in [Self.forwarded("POST", "/v1/x?a=b"), original] {
                expectUnauthorized(try gateway.get("/auth/check", fields), "credential_missing")
                Self.expectAllowed(try gateway.get("/auth/check", fields + token), subject: subject)
            }
            expectUnauthorized(try gateway.get("/auth/check/v1/x"), "credential_missing")
            Self.expectAllowed(try gateway.get("/auth/check/v1/x", token), subject: subject)
            Self.expectAllowed(try gateway.get("/auth/check/named/x", token), user: subject)
            Self.expectAllowed(try gateway.get("/auth/check/public/x", token))
            Self.expectAllowed(try gateway.exchange("HEAD", "/auth/check/read/x"))
        }
    }

    @Test func `are 403 where there is no route, or none for the method`() throws {
        try Self.withChecks { gateway, _, _ throws in
            expectRejection(try gateway.get("/auth/check/none"), 403, "no_route")
            expectRejection(try gateway.get("/auth/check/auth/login/apple"), 403, "no_route")
            expectRejection(try gateway.exchange("POST", "/auth/check/read/x"), 403, "method_not_allowed")
        }
    }

    @Test func `are rejected if they do not describe one request`() throws {
        try Self.withChecks { gateway, _, _ throws in
            let fields = Self.forwarded("GET", "/public/x")
            expectRejection(try gateway.get("/auth/check"), 400, "request_invalid")
            expectRejection(try gateway.get("/auth/check?deny=403"), 403, "request_invalid")
            expectRejection(
                try gateway.get("/auth/check", fields + [("X-Original-URI", "/v1/x")]), 400, "request_invalid")
            expectRejection(
                try gateway.get("/auth/check", fields + [("X-Forwarded-Uri", "/public/x")]), 400, "request_invalid")
            for path in ["/public/..%2fv1/x", "/public/%2e%2e/v1/x", "/public//x", "/public/\\x"] {
                expectRejection(
                    try gateway.get("/auth/check", Self.forwarded("GET", path)), 400, "request_invalid", path)
            }
            for reason in ["check.undescribed", "check.field_conflict", "check.field_repeated"] {
                try waitUntil("\(reason) is logged") { gateway.log.contains { $0["reason"] == reason } }
            }
            #expect(gateway.log.contains { $0["condition"] == "X-Original-URI" })
        }
    }

    @Test func `are for trusted proxies alone`() throws {
        let routes = "- { name: public, match: { path: /public/** }, auth: none, upstream: api }"
        try Self.withChecks(server: "", routes: routes, more: "forward_auth: { deny: 403 }\n") { gateway, _, _ throws in
            expectRejection(try gateway.get("/auth/check/public/x"), 404, "no_route")
            try waitUntil("the reason is logged") { gateway.log.contains { $0["reason"] == "check.untrusted_peer" } }
        }
    }

    @Test func `have routes of their own, which serve no other request`() throws {
        try Self.withChecks { gateway, _, apple throws in
            expectRejection(try gateway.get("/public/x"), 404, "no_route")
            expectRejection(try gateway.get("/named/x", bearer(try apple.token())), 404, "no_route")
        }
    }

    @Test func `are logged as the request, with the client behind the proxy`() throws {
        try Self.withChecks { gateway, _, _ throws in
            Self.expectAllowed(try gateway.get("/auth/check", Self.forwarded("PUT", "/public/%78")))
            try waitUntil("the request is logged") { gateway.log.contains { $0["route"] == "public" } }
            let line = try #require(gateway.log.first { $0["route"] == "public" })
            #expect(line["client"] == "203.0.113.9" && line["method"] == "PUT" && line["path"] == "/public/x")
            #expect(line["host"] == "api.example.com" && line.text.contains(#""check":true"#))
        }
    }

    @Test func `leave the body unread`() throws {
        try Self.withChecks { gateway, _, _ throws in
            let client = try gateway.connect()
            try client.send("POST", "/auth/check/public/x", [("Content-Length", "1000000000")])
            let response = try client.response()
            Self.expectAllowed(response)
            #expect(response["Connection"] == "close")
        }
    }

    @Test func `over HTTP/2 are never let in by the form of gRPC`() throws {
        try Self.withChecks { gateway, _, _ throws in
            let caller = try HTTP2Caller(to: gateway)
            let refused = try caller.response(
                caller.ask("GET", "/auth/check/v1/x", [("content-type", "application/grpc")]))
            #expect(refused.status == 401)
            let allowed = try caller.response(caller.ask("GET", "/auth/check/public/x"))
            #expect(allowed.status == 200 && allowed.head.lowercased().contains("x-auth-subject:"))
        }
    }
}
