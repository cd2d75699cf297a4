import MartletTesting
import Testing

/// No byte of an identity header at an upstream comes from a client.
@Suite struct `Identity headers` {
    static let subject = "001234.0123456789abcdef0123456789abcdef.0001"

    @Test func `the verified identity reaches the upstream, the token does not`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            #expect(try gateway.get("/v1", bearer(apple.token())).status == 200)
            let request = try upstream.onlyRequest()
            #expect(request["X-Auth-Subject"] == "apple:\(Self.subject)")
            #expect(request["X-Auth-Provider"] == "apple")
            #expect(request["X-Auth-Email"] == "someone@example.com")
            #expect(request["Authorization"] == nil)
        }
    }

    @Test func `an address that Apple has not verified is not passed on`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            for value: JSONText in ["false", "\"false\"", "\"yes\"", "1", "null"] {
                _ = try gateway.get("/v1", bearer(apple.token { $0.claims["email_verified"] = value }))
            }
            for value: JSONText in ["\"true\""] {
                #expect(
                    try gateway.get("/v1", bearer(apple.token { $0.claims["email_verified"] = value })).status == 200)
                #expect(upstream.requests.last?["X-Auth-Email"] == "someone@example.com")
            }
            #expect(upstream.requests.dropLast().allSatisfy { $0["X-Auth-Email"] == nil })
        }
    }

    static let spellings = [
        "X-Auth-Subject", "x-auth-subject", "X-AUTH-SUBJECT", "X_Auth_Subject", "x_auth-subject", "X-Auth_Subject",
        "X.Auth.Subject",
        "X-Auth-Provider", "X-Auth-Email", "X_AUTH_EMAIL", "X-Auth-Anything", "x_auth_roles", "X-Auth-",
        "X-Auth-Assertion", "X--Auth-Subject", "-x-auth-subject", "XAuthSubject", "X!Auth!Subject", "X~Auth~Anything",
        "x*auth*subject", "XAuth-Roles", ".X-Auth-Email", "X-Auth-Email.", "X-%41uth-Subject", "X%2DAuth-Subject",
        "Any%Name",
    ]

    @Test(arguments: ["/public/a", "/maybe/a", "/closed"])
    func `a client's copy is removed on every route, in every spelling`(path: String) throws {
        try withAppleGateway { gateway, upstream, apple throws in
            let forged = Self.spellings.map { ($0, "forged") }
            let credential = path == "/closed" ? bearer(try apple.token()) : []
            let response = try gateway.get(path, forged + credential + [("X-Author", "kept"), ("X-Authority", "kept")])
            #expect(response.status == 200, "\(response)")
            let request = try upstream.onlyRequest()
            #expect(!request.fields.contains { $0.value.contains("forged") }, "\(request)")
            #expect(request["X-Author"] == "kept" && request["X-Authority"] == "kept")
            let expected = path == "/closed" ? ["apple:\(Self.subject)"] : []
            #expect(request.all("X-Auth-Subject") == expected)
        }
    }

    static let custom = """
        - name: other
          match: { path: /public/** }
          auth: none
          upstream: api
        - name: custom
          match: { path: /** }
          auth: { providers: [apple] }
          headers:
            set:
              X-User-Id: { attribute: subject }
              X-Via: { attribute: route }
              X-Who: { attribute: provider_subject }
              X-Issuer: { attribute: issuer }
              X-Ends: { attribute: expires_at }
              X-Since: { attribute: auth_time }
              X-Gone: { claim: nothing }
              X-Default: { claim: nothing, default: none }
            remove: [X-Internal-Debug]
          upstream: api
        """

    @Test func `names that a route sets are reserved on every route`() throws {
        try withAppleGateway(routes: Self.custom) { gateway, upstream, apple throws in
            let forged = [
                ("X-User-Id", "forged"), ("x_user_id", "forged"), ("X-GONE", "forged"), ("X_Default", "forged"),
                ("XUserId", "forged"), ("x|user|id", "forged"), ("X__User__Id", "forged"), ("-X-User-Id", "forged"),
            ]
            #expect(try gateway.get("/public/a", forged).status == 200)
            #expect(try gateway.get("/v1", forged + bearer(apple.token())).status == 200)
            #expect(!upstream.requests.contains { $0.fields.contains { $0.value == "forged" } })
        }
    }

    @Test func `attributes, defaults and removals are as the route says`() throws {
        try withAppleGateway(routes: Self.custom) { gateway, upstream, apple throws in
            let time = unixNow()
            let token = try apple.token {
                $0.claims["auth_time"] = JSONText(time - 5)
                $0.claims["exp"] = JSONText(time + 500)
            }
            #expect(
                try gateway.get("/v1", bearer(token) + [("X-Internal-Debug", "1"), ("x-internal-debug", "2")]).status
                    == 200)
            let request = try upstream.onlyRequest()
            let rows = [
                ("X-User-Id", "apple:\(Self.subject)"), ("X-Via", "custom"), ("X-Who", Self.subject),
                ("X-Issuer", "https://appleid.apple.com"), ("X-Ends", "\(time + 500)"), ("X-Since", "\(time - 5)"),
                ("X-Default", "none"),
            ]
            for (name, value) in rows { #expect(request.all(name) == [value], "\(name)") }
            #expect(request["X-Gone"] == nil && request["X-Internal-Debug"] == nil)
            #expect(request["X-Auth-Subject"] == nil)
        }
    }

    @Test func `a name listed in Connection removes nothing of ours`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            let names = "X-Auth-Subject, x-auth-provider, X-Request-Id, X-Forwarded-For, X-Forwarded-Proto, Host, X-Own"
            let fields = [("Connection", names), ("X-Own", "1"), ("X-Forwarded-For", "1.2.3.4")]
            #expect(try gateway.get("/v1", bearer(apple.token()) + fields).status == 200)
            let request = try upstream.onlyRequest()
            for name in [
                "X-Auth-Subject", "X-Auth-Provider", "X-Request-Id", "X-Forwarded-For", "X-Forwarded-Proto", "Host",
            ] {
                #expect(request.all(name).count == 1, "\(name): \(request)")
            }
            #expect(request["X-Own"] == nil)
        }
    }

    @Test func `hop-by-hop fields stay on their hop, both ways`() throws {
        let script: ScriptedUpstream.Script = {
            try $0.respond(
                200,
                [
                    ("Connection", "X-Private"), ("X-Private", "1"), ("Keep-Alive", "timeout=5"), ("X-Public", "1"),
                    ("Proxy-Connection", "keep-alive"),
                ], body: "ok")
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let fields = [
                ("Connection", "keep-alive, X-Private"), ("X-Private", "1"), ("Keep-Alive", "1"),
                ("Proxy-Connection", "close"),
                ("TE", "gzip"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABkAAQAAP__"),
                ("Proxy-Authorization", "Basic eDp5"),
            ]
            let response = try gateway.get("/", fields)
            let request = try upstream.onlyRequest()
            for name in ["X-Private", "Keep-Alive", "Proxy-Connection", "Upgrade", "Proxy-Authorization"] {
                #expect(request[name] == nil, "\(name)")
            }
            for name in ["X-Private", "Keep-Alive", "Proxy-Connection"] { #expect(response[name] == nil, "\(name)") }
            #expect(response["X-Public"] == "1")
        }
    }

    @Test func `an identity name in a trailer goes nowhere`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            let client = try gateway.connect()
            try client.send("POST /v1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(try apple.token())\r\n")
            try client.send("Trailer: X-Auth-Subject, X_Auth_Email, X-Sum, Authorization, Content-Length\r\n")
            try client.send(
                "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Auth-Subject: forged\r\nX_Auth_Email: forged\r\n")
            try client.send(
                "X-Sum: kept\r\nAuthorization: forged\r\nContent-Length: 99\r\nX-Unannounced: dropped\r\n\r\n")
            #expect(try client.response().status == 200)
            let request = try upstream.onlyRequest()
            #expect(request.trailers.map(\.description) == ["X-Sum: kept"])
            #expect(request.all("X-Auth-Subject") == ["apple:\(Self.subject)"])
        }
    }

    @Test func `an identity name in a response's trailer goes nowhere`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n")
            try exchange.send("X-Auth-Subject: forged\r\nX_Auth_Email: forged\r\nX-Sum: kept\r\n")
            try exchange.send("Authorization: forged\r\nContent_Length: 99\r\n\r\n")
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let response = try gateway.exchange("GET", "/")
            #expect(response.text == "hi" && response.end == .complete)
            #expect(response.trailers.map(\.description) == ["X-Sum: kept"])
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let stream = try peer.outcome(of: try peer.request(["GET / HTTP/1.1", "Host: a"], ends: true))
            #expect(stream.body == Array("hi".utf8) && stream.trailers == "x-sum: kept\r\n")
        }
    }

    @Test func `a credential goes on only where the route says so`() throws {
        let routes = """
            - { name: keep, match: { path: /keep }, auth: { providers: [apple] }, forward_credentials: true, upstream: api }
            """
        try withAppleGateway(routes: routes + "\n" + GatewayConfig.closed) { gateway, upstream, apple throws in
            let token = try apple.token()
            #expect(try gateway.get("/keep", bearer(token)).status == 200)
            #expect(upstream.requests.last?["Authorization"] == "Bearer \(token)")
            #expect(try gateway.get("/public/a", [("Authorization", "Basic eDp5")]).status == 200)
            #expect(upstream.requests.last?["Authorization"] == "Basic eDp5")
            for own in ["mat_" + String(repeating: "A", count: 60), "mrt_" + String(repeating: "A", count: 60)] {
                #expect(try gateway.get("/public/a", bearer(own)).status == 200)
                #expect(upstream.requests.last?["Authorization"] == nil, "\(own)")
            }
        }
    }

    @Test func `a route with optional authentication passes strangers on without identity`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            #expect(try gateway.get("/maybe/a").status == 200)
            #expect(upstream.requests.last?["X-Auth-Subject"] == nil)
            #expect(try gateway.get("/maybe/a", bearer(apple.token())).status == 200)
            #expect(upstream.requests.last?["X-Auth-Subject"] == "apple:\(Self.subject)")
        }
    }
}

/// How values that are not printable ASCII travel.
@Suite struct `Header encodings` {
    static let routes = """
        - name: all
          match: { path: /** }
          auth: { providers: [apple] }
          headers:
            set:
              X-Default: { claim: email }
              X-Percent: { claim: email, encode: percent }
              X-Base: { claim: email, encode: base64url }
              X-8187: { claim: email, encode: rfc8187 }
              X-Ascii: { claim: email, encode: ascii }
              X-Verified: { claim: email_verified }
          upstream: api
        """

    @Test func `each encoding renders text without a byte that could harm`() throws {
        let rows: [(JSONText, [String: String?])] = [
            (
                "\"plain@example.com\"",
                [
                    "X-Default": "plain@example.com", "X-Base": "cGxhaW5AZXhhbXBsZS5jb20",
                    "X-Ascii": "plain@example.com",
                    "X-8187": "UTF-8''plain%40example.com",
                ]
            ),
            (
                "\"zo\u{eb}@example.com\"",
                [
                    "X-Default": "zo%C3%AB@example.com", "X-Percent": "zo%C3%AB@example.com", "X-Ascii": nil,
                    "X-Base": "em_Dq0BleGFtcGxlLmNvbQ", "X-8187": "UTF-8''zo%C3%AB%40example.com",
                ]
            ),
            ("\"a%b\"", ["X-Default": "a%25b", "X-Ascii": "a%b"]),
            (
                "\"a\\r\\nX-Evil: 1\\u0000\\u007f\"",
                ["X-Default": "a%0D%0AX-Evil: 1%00%7F", "X-Ascii": nil, "X-Evil": nil]
            ),
        ]
        try withAppleGateway(routes: Self.routes) { gateway, upstream, apple throws in
            for (email, expected) in rows {
                let response = try gateway.get("/", bearer(apple.token { $0.claims["email"] = email }))
                guard response.status == 200 else {
                    Issue.record("\(email): \(response)")
                    continue
                }
                let request = upstream.requests.last
                for (name, value) in expected { #expect(request?[name] == value, "\(email) \(name)") }
                let isClean = request?.rawHead.allSatisfy { (0x20...0x7E).contains($0) || $0 == 13 || $0 == 10 } == true
                #expect(isClean && request?["X-Evil"] == nil, "\(email)")
            }
            #expect(upstream.requests.last?["X-Verified"] == "true")
        }
    }
}
