import MartletTesting
import Testing

/// A message of protocol buffers, as a test writes and reads it.
private enum Message {
    static func field(_ number: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length = content.count
        var bytes = [number << 3 | 2]
        while length >= 0x80 {
            bytes.append(UInt8(length & 0x7F) | 0x80)
            length >>= 7
        }
        return bytes + [UInt8(length)] + content
    }

    static func text(_ number: UInt8, _ text: String) -> [UInt8] { field(number, Array(text.utf8)) }

    static func entry(_ number: UInt8, _ name: String, _ value: String) -> [UInt8] {
        field(number, text(1, name) + text(2, value))
    }

    /// The fields by their numbers; a number is its bytes.
    static func fields(_ bytes: [UInt8]) throws -> [(number: UInt64, content: [UInt8])] {
        var rest = bytes[...]
        func number() throws -> UInt64 {
            var (value, shift): (UInt64, UInt64) = (0, 0)
            while let byte = rest.popFirst() {
                value |= UInt64(byte & 0x7F) << shift
                if byte < 0x80 { return value }
                shift += 7
            }
            throw TestFailure("no message: \(bytes)")
        }
        var found: [(UInt64, [UInt8])] = []
        while !rest.isEmpty {
            let key = try number()
            if key & 7 == 0 {
                found.append((key >> 3, Array("\(try number())".utf8)))
            } else {
                let count = Int(try number())
                found.append((key >> 3, Array(rest.prefix(count))))
                rest = rest.dropFirst(count)
            }
        }
        return found
    }

    /// What the first field of each number, from the outside to the inside, contains.
    static func content(_ bytes: [UInt8], _ path: UInt64...) throws -> [UInt8]? {
        var content: [UInt8]? = bytes
        for number in path {
            guard let outer = content else { return nil }
            content = try fields(outer).first { $0.number == number }?.content
        }
        return content
    }
}

/// A response to a check.
private struct Decision {
    /// The code of its status; "0" lets the request pass.
    var code = ""
    /// What the client of a rejected request gets.
    var status = ""
    var body = ""
    /// `name: value` of the request to the API, or of the response to the client.
    var headers: [String] = []
    var removed: [String] = []
    /// `name: value` of the response to the client of a request that passes.
    var added: [String] = []

    init(_ bytes: [UInt8]) throws {
        func text(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }
        func header(_ option: [UInt8]) throws -> String {
            let action = try Message.content(option, 3).map { " \(text($0))" } ?? ""
            let (name, value) = (try Message.content(option, 1, 1), try Message.content(option, 1, 2))
            return "\(text(name)): \(text(value))\(action)"
        }
        code = text(try Message.content(bytes, 1, 1))
        if code.isEmpty { code = "0" }
        if let denied = try Message.content(bytes, 2) {
            status = text(try Message.content(denied, 1, 1))
            body = text(try Message.content(denied, 3))
            headers = try Message.fields(denied).filter { $0.number == 2 }.map { try header($0.content) }
        }
        if let allowed = try Message.content(bytes, 3) {
            status = "passes"
            headers = try Message.fields(allowed).filter { $0.number == 2 }.map { try header($0.content) }
            removed = try Message.fields(allowed).filter { $0.number == 5 }.map { text($0.content) }
            added = try Message.fields(allowed).filter { $0.number == 6 }.map { try header($0.content) }
        }
    }
}

/// The endpoint for checks by gRPC, as Envoy calls it.
@Suite struct `Checks by gRPC` {
    private static let method = "/envoy.service.auth.v3.Authorization/Check"
    private static let routes = """
        - { name: public, match: { path: /public/** }, auth: none }
        - { name: read, match: { path: /read/**, methods: [GET] }, auth: none }
        - { name: own, match: { path: /own/** }, auth: none, respond: { status: 204 } }
        - { name: closed, match: { path: /v1/** }, auth: { providers: [apple] }, headers: { set: { X-User: { attribute: subject } } } }
        """

    private static func withChecks(
        server: String = "trusted_proxies: [127.0.0.1/32]", routes: String = routes, more: String = "",
        _ body: (Gateway, HTTP2Peer, AppleFixture) throws -> Void
    ) throws {
        try withAppleGateway(routes: routes, server: server, more: more) { gateway, upstream, apple throws in
            try body(gateway, HTTP2Peer(to: gateway.endpoint), apple)
            #expect(upstream.requests.isEmpty)
        }
    }

    /// A `CheckRequest` about a request.
    private static func request(
        _ method: String, _ path: String, _ fields: [(String, String)] = [], extensions: [(String, String)] = []
    ) -> [UInt8] {
        let headers = ([(":path", path)] + fields).flatMap { Message.entry(3, $0.0, $0.1) }
        let http = Message.text(2, method) + headers + Message.text(4, path) + Message.text(5, "api.example.com")
        let address = Message.field(1, Message.field(1, Message.text(2, "203.0.113.9") + [0x18, 80]))
        let more = extensions.flatMap { Message.entry(10, $0.0, $0.1) }
        let attributes = Message.field(1, address) + Message.field(4, Message.field(2, http + Message.text(6, "https")))
        return Message.field(1, attributes + more)
    }

    private static func framed(_ message: [UInt8]) -> [UInt8] {
        [0] + [24, 16, 8, 0].map { UInt8(message.count >> $0 & 0xFF) } + message
    }

    /// Sends the body of a call.
    private static func send(_ bytes: [UInt8], _ peer: HTTP2Peer) throws -> HTTP2Peer.Stream {
        let stream = try peer.request(call(method), ends: false)
        try peer.send(stream, bytes)
        try peer.end(stream)
        return try peer.outcome(of: stream)
    }

    private static func check(_ message: [UInt8], _ peer: HTTP2Peer) throws -> Decision {
        let stream = try send(framed(message), peer)
        #expect(stream.head.hasPrefix("HTTP/1.1 200") && stream.value(of: "content-type") == "application/grpc")
        #expect(stream.value(of: "grpc-status") == "0" && stream.messages.count == 1, "\(stream)")
        return try Decision(stream.messages.first ?? [])
    }

    @Test func `let a request pass with the identity, and delete every other name`() throws {
        try Self.withChecks { _, peer, apple throws in
            let subject = "apple:001234.0123456789abcdef0123456789abcdef.0001"
            let token = bearer(try apple.token())
            // The second is known, and decided without waiting.
            for _ in 0..<2 {
                let decision = try Self.check(Self.request("POST", "/v1/x?a=b", token), peer)
                #expect(decision.code == "0" && decision.status == "passes", "\(decision)")
                #expect(decision.headers == ["x-user: \(subject) 2"] && decision.added.isEmpty)
                #expect(Set(decision.removed).isSuperset(of: ["x-auth-subject", "x-auth-email", "x-auth-assertion"]))
            }
            let open = try Self.check(Self.request("GET", "/public/x"), peer)
            #expect(open.status == "passes" && open.headers.isEmpty && open.removed.contains("x-user"))
        }
    }

    @Test func `name what the API must not get`() throws {
        try Self.withChecks { _, peer, apple throws in
            let token = bearer(try apple.token())
            let spelled = [
                "x_auth_subject", "x-auth_subject", "x.auth.subject", "xauthsubject", "x_user", "xuser",
                "x~auth-assertion",
                "x-auth-role",
            ]
            let fields = spelled.map { ($0, "root") } + [("dpop", "a.b.c"), ("x-other", "mak_x"), ("x-kept", "1")]
            for path in ["/v1/x", "/public/x"] {
                let decision = try Self.check(Self.request("GET", path, fields + (path == "/v1/x" ? token : [])), peer)
                #expect(decision.status == "passes", "\(decision)")
                for name in spelled + ["dpop", "x-other"] {
                    #expect(decision.removed.count { $0 == name } == 1, "\(path) \(name) \(decision)")
                }
                #expect(decision.removed.contains("authorization") == (path == "/v1/x"))
                for name in ["x-kept", "x-user", ":path"] {
                    #expect(decision.removed.contains(name) == (name == "x-user" && path == "/public/x"), "\(name)")
                }
            }
            // Another credential is the API's own.
            let basic = try Self.check(Self.request("GET", "/public/x", [("authorization", "Basic eDp5")]), peer)
            #expect(!basic.removed.contains("authorization"))
            let own = try Self.check(Self.request("GET", "/public/x", bearer("mat_x")), peer)
            #expect(own.removed.contains("authorization"))
        }
    }

    @Test func `reject with the response that the client is to get`() throws {
        try Self.withChecks { _, peer, apple throws in
            let missing = try Self.check(Self.request("GET", "/v1/x"), peer)
            #expect(missing.code == "16" && missing.status == "401", "\(missing)")
            #expect(missing.headers.contains(#"www-authenticate: Bearer realm="martlet""#))
            #expect(missing.headers.contains("content-type: application/problem+json"))
            #expect(missing.body.contains(#""code":"credential_missing""#))
            let bad = try Self.check(Self.request("GET", "/v1/x", bearer("e30.e30.e30")), peer)
            #expect(bad.code == "16" && bad.body.contains("credential_invalid"))
            for (method, path, code) in [
                ("GET", "/none", "no_route"), ("POST", "/read/x", "method_not_allowed"), ("GET", "/own/x", "no_route"),
                ("GET", "/auth/check/public/x", "no_route"), ("GET", Self.method, "no_route"),
            ] {
                let decision = try Self.check(Self.request(method, path), peer)
                #expect(decision.code == "7" && decision.status == "403" && decision.body.contains(code), "\(path)")
            }
            let two = [("authorization", "Bearer \(try apple.token()),Bearer x")]
            for (path, fields) in [
                ("/public/..%2fv1/x", []), ("/public/%2e%2e/v1/x", []), ("/../../v1/x", []), ("public/x", []),
                ("/v1/x", two), ("/public/x", [("x-original-uri", "/v1/x")]),
            ] {
                let decision = try Self.check(Self.request("GET", path, fields), peer)
                #expect(decision.code == "3" && decision.status == "400", "\(path) \(decision)")
            }
            let alike = Self.request("GET", "/public/%2e%2e/x", extensions: [("deny", "403")])
            #expect(try Self.check(alike, peer).status == "403")
        }
    }

    @Test func `are errors of the call where they are no check`() throws {
        try Self.withChecks { gateway, peer, _ throws in
            let whole = Self.framed(Self.request("GET", "/public/x"))
            let compressed = [1] + whole.dropFirst()
            for body in [[], Array(whole.dropLast()), whole + [0], compressed, Self.framed([0x0B])] {
                #expect(try Self.send(body, peer).value(of: "grpc-status") == "3", "\(body)")
            }
            let empty = try peer.request(call(Self.method), ends: true)
            #expect(try peer.outcome(of: empty).value(of: "grpc-status") == "3")
            let large = Self.request("GET", "/public/x", [("x-large", String(repeating: "a", count: 70_000))])
            #expect(try Self.send(Self.framed(large), peer).value(of: "grpc-status") == "8")
            expectRejection(try gateway.exchange("POST", Self.method, body: whole), 404, "no_route")
        }
    }

    @Test func `count for the limits of the route, and say what is left`() throws {
        let routes = "- { name: few, match: { path: /few }, auth: none, limits: { rate: [few], announce: true } }"
        let more = "rate_limits: { few: { key: address, rate: 1/h, burst: 1 } }"
        try Self.withChecks(routes: routes, more: more) { _, peer, _ throws in
            let first = try Self.check(Self.request("GET", "/few"), peer)
            #expect(first.status == "passes" && first.added.contains { $0.hasPrefix("ratelimit: ") }, "\(first)")
            let second = try Self.check(Self.request("GET", "/few"), peer)
            #expect(second.code == "8" && second.status == "429", "\(second)")
            #expect(second.headers.contains { $0.hasPrefix("retry-after: ") })
            let alike = Self.request("GET", "/few", extensions: [("deny", "403")])
            #expect(try Self.check(alike, peer).status == "403")
        }
    }

    @Test func `send a navigation to sign in where they say so`() throws {
        let more = "sessions: {}\nbrowser: { origin: https://api.example.com }"
        try Self.withChecks(more: more) { _, peer, _ throws in
            let fields = [("sec-fetch-mode", "navigate"), ("accept", "text/html")]
            let plain = try Self.check(Self.request("GET", "/v1/x?a=b", fields), peer)
            #expect(plain.status == "401")
            let browser = Self.request("GET", "/v1/x?a=b", fields, extensions: [("browser", "1")])
            let decision = try Self.check(browser, peer)
            #expect(decision.code == "7" && decision.status == "302", "\(decision)")
            #expect(decision.headers.contains { $0.hasPrefix("location: ") && $0.contains("/auth/sign-in?return_to=") })
        }
    }

    @Test func `are for trusted proxies alone`() throws {
        try Self.withChecks(server: "trusted_proxies: [192.0.2.0/24]") { gateway, peer, _ throws in
            let stream = try Self.send(Self.framed(Self.request("GET", "/public/x")), peer)
            #expect(stream.value(of: "grpc-status") == "7" && stream.messages.isEmpty)
            try waitUntil("the reason is logged") { gateway.log.contains { $0["reason"] == "check.untrusted_peer" } }
        }
    }

    @Test func `are logged and counted as the request, with its client`() throws {
        try Self.withChecks { gateway, peer, _ throws in
            _ = try Self.check(Self.request("PUT", "/public/%78"), peer)
            try waitUntil("the request is logged") { gateway.log.contains { $0["route"] == "public" } }
            let line = try #require(gateway.log.first { $0["route"] == "public" })
            #expect(line["client"] == "203.0.113.9" && line["method"] == "PUT" && line["path"] == "/public/x")
            #expect(line["host"] == "api.example.com" && line.text.contains(#""check":true"#))
            let metrics = try gateway.askAdmin("/metrics").text
            let sample = #"martlet_proxy_requests_total{route="public",status="200",via="check"} 1"#
            #expect(metrics.contains(sample))
        }
    }

    @Test func `on one connection do not wait for each other`() throws {
        try Self.withChecks { _, peer, apple throws in
            let body = Self.framed(Self.request("GET", "/v1/x", bearer(try apple.token())))
            let streams = try (0..<20).map { _ in try peer.request(call(Self.method), ends: false) }
            for stream in streams { try peer.send(stream, Array(body.prefix(7))) }
            for stream in streams.reversed() {
                try peer.send(stream, Array(body.dropFirst(7)))
                try peer.end(stream)
            }
            for stream in streams {
                #expect(try Decision(peer.outcome(of: stream).messages.first ?? []).status == "passes")
            }
        }
    }
}
