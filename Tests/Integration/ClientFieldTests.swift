import MartletHTTP2
import MartletTesting
import Testing

/// Which of a client's fields an upstream gets, of heads and of trailers, for every pair of protocols.
@Suite struct `Client fields` {
    private static let routes = """
        - name: open
          match: { path: /** }
          auth: none
          headers: { set: { X-User-Id: { attribute: subject } }, remove: [X-Internal-Debug] }
          upstream: api
        """
    /// What no upstream may get from a stranger.
    private static let barred = [
        "X-User-Id", "XUserId", "x-auth-roles", "x--auth-subject", "-x-auth-subject", "x%2dauth-subject", "any%thing",
        "X-Internal-Debug", "x_internal_debug", "X-Forwarded-User", "x__forwarded-user", "X-Original-URL",
        "x_original_uri",
        "X-Rewrite-URL", "X-Original-Method", "X-Forwarded-Uri", "X-Forwarded-Method", "X-Real-IP", "True-Client-IP",
        "trueclientip",
        "Client-Cert", "Remote-User", "remote_user", "-authorization",
    ]

    /// The lines of a request in chunks whose head and trailers have the same fields.
    private static func message(_ names: [String]) -> String {
        let fields = (names + ["X-Sum"]).map { "\($0): sent\r\n" }.joined()
        return
            "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: \((names + ["X-Sum"]).joined(separator: ", "))\r\n"
            + fields + "\r\n2\r\nhi\r\n0\r\n" + fields + "\r\n"
    }

    @Test func `go the same way as trailers and in the head`() throws {
        try withOpenGateway(routes: Self.routes) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send(Self.message(Self.barred))
            #expect(try client.response().status == 200)
            let request = try upstream.onlyRequest()
            #expect(request.fields.filter { $0.value == "sent" }.map(\.name) == ["X-Sum"], "\(request)")
            #expect(request.trailers.map(\.description) == ["X-Sum: sent"])
            #expect(request.all("Trailer") == ["X-Sum"])
        }
    }

    @Test func `no announcement is left where no name may pass`() throws {
        try withOpenGateway(routes: Self.routes) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send(
                "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-User-Id, , Content-Length\r\n\r\n0\r\n\r\n"
            )
            #expect(try client.response().status == 200)
            #expect(try upstream.onlyRequest().all("Trailer").isEmpty)
        }
    }

    @Test func `frames to lines`() throws {
        try withOpenGateway(routes: Self.routes) { gateway, upstream throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let names = Self.barred.map { $0.lowercased() } + ["x-sum"]
            let lines = ["POST /a HTTP/1.1", "Host: a", "Trailer: \(names.joined(separator: ", "))"]
            let stream = try peer.request(lines + names.map { "\($0): sent" }, ends: false)
            try peer.send(stream, Array("hi".utf8))
            try peer.end(stream, trailers: names.map { "\($0): sent\r\n" }.joined())
            #expect(try peer.outcome(of: stream).head.hasPrefix("HTTP/1.1 200"))
            let request = try upstream.onlyRequest()
            #expect(request.fields.filter { $0.value == "sent" }.map(\.name) == ["x-sum"], "\(request)")
            #expect(request.trailers.map(\.description) == ["x-sum: sent"])
            #expect(request.all("Trailer") == ["x-sum"])
        }
    }

    @Test func `lines and frames to frames`() throws {
        let seen = Box<[HTTP2Peer.Stream]>([])
        let upstream = try FrameUpstream { peer, stream, request in
            seen.withLock { $0.append(request) }
            try peer.respond(stream, ["HTTP/1.1 200 OK"], ends: true)
        }
        try withMartlet(GatewayConfig(endpoints: [upstream.url], routes: Self.routes).text) { gateway throws in
            let client = try gateway.connect()
            try client.send(Self.message(Self.barred))
            #expect(try client.response().status == 200)
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let names = Self.barred.map { $0.lowercased() } + ["x-sum"]
            let lines = ["POST /a HTTP/1.1", "Host: a"] + names.map { "\($0): sent" }
            let stream = try peer.request(lines, ends: false)
            try peer.end(stream, trailers: names.map { "\($0): sent\r\n" }.joined())
            #expect(try peer.outcome(of: stream).head.hasPrefix("HTTP/1.1 200"))
        }
        #expect(seen.value.count == 2)
        for request in seen.value {
            let sent = request.head.split(separator: "\r\n").filter { $0.hasSuffix(": sent") }
            #expect(sent == ["x-sum: sent"] && request.trailers == "x-sum: sent\r\n", "\(request)")
        }
        #expect(seen.value.first?.head.contains("trailer: X-Sum\r\n") == true)
    }

    @Test func `a trusted proxy says what strangers may not, and still no identity`() throws {
        let routes = """
            - name: open
              match: { path: /** }
              auth: none
              headers: { set: { X-Real-IP: { attribute: subject }, X-Forwarded-Prefix: { attribute: provider }, X-Forwarded-Port: { attribute: route } } }
              upstream: api
            """
        try withOpenGateway(server: "trusted_proxies: [127.0.0.1/32]", routes: routes) { gateway, upstream throws in
            let names = [
                "X-Real-IP", "x_real_ip", "X-Forwarded-Prefix", "x-forwarded--prefix", "X-Forwarded-Port",
                "X-Original-URL", "X-Forwarded-Uri",
                "Remote-User", "X-Forwarded-User", "x_forwarded_proto",
            ]
            #expect(try gateway.get("/a", names.map { ($0, "sent") }).status == 200)
            let request = try upstream.onlyRequest()
            #expect(
                request.fields.filter { $0.value == "sent" }.map(\.name) == [
                    "X-Original-URL", "X-Forwarded-Uri", "Remote-User", "X-Forwarded-User",
                ])
        }
    }

    private static let methods = """
        - { name: write, match: { path: /m/**, methods: [POST] }, auth: none, upstream: api }
        - { name: all, match: { path: /** }, auth: none, upstream: api }
        """

    @Test(arguments: ["X-HTTP-Method-Override", "X-HTTP-Method", "x_method_override"])
    func `another method cannot be asked for where routes go by methods`(_ name: String) throws {
        try withOpenGateway(routes: Self.methods) { gateway, upstream throws in
            for (path, count) in [("/m/a", 0), ("/other", 1)] {
                #expect(try gateway.get(path, [(name, "DELETE"), ("Accept", "a")]).status == 200)
                #expect(upstream.requests.last?.all(name).count == count, "\(path)")
                #expect(upstream.requests.last?["Accept"] == "a")
            }
        }
    }

    @Test func `strip_headers replaces the list`() throws {
        try withOpenGateway(server: "strip_headers: [X-Own]", routes: Self.methods) { gateway, upstream throws in
            let names = ["X-Own", "x_own", "X-Original-URL", "X-Forwarded-Uri", "X-HTTP-Method", "X-Forwarded-User"]
            #expect(try gateway.get("/m/a", names.map { ($0, "sent") }).status == 200)
            let request = try upstream.onlyRequest()
            #expect(
                request.fields.filter { $0.value == "sent" }.map(\.name) == [
                    "X-Original-URL", "X-Forwarded-Uri", "X-HTTP-Method",
                ])
        }
    }

    @Test func `a route removes what the gateway knows, too`() throws {
        let routes =
            "- { name: open, match: { path: /** }, auth: none, headers: { remove: [Authorization, X-Real-IP] }, upstream: api }"
        try withOpenGateway(server: "trusted_proxies: [127.0.0.1/32]", routes: routes) { gateway, upstream throws in
            #expect(try gateway.get("/a", [("Authorization", "Basic eDp5"), ("X-Real-IP", "1.2.3.4")]).status == 200)
            let request = try upstream.onlyRequest()
            #expect(request["Authorization"] == nil && request["X-Real-IP"] == nil)
        }
    }
}
