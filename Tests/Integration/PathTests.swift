import MartletTesting
import Testing

/// Section 5 of the contract: one reading of every path, or none.
@Suite struct `Paths` {
    @Test func `a plain path is matched and forwarded in one spelling`() throws {
        let rows = [
            ("/", "/"), ("/a", "/a"), ("/a/", "/a/"), ("/a/b.c", "/a/b.c"), ("/%61%2Db%5F%7e%2E1", "/a-b_~.1"),
            ("/a;b=c/d", "/a;b=c/d"), ("/..a/a../...", "/..a/a../..."), ("/a%20b", "/a%20b"), ("/a:b@c,d", "/a:b@c,d"),
            ("/%C3%A9", "/%C3%A9"), ("/%E2%82%AC", "/%E2%82%AC"), ("/%F0%9F%90%A6", "/%F0%9F%90%A6"), ("/a+b", "/a+b"),
            ("/a?", "/a?"), ("/a?x=%2e%2e/../&y=%zz&z=//;\\|\"", "/a?x=%2e%2e/../&y=%zz&z=//;\\|\""),
            ("http://localhost/a?b", "/a?b"), ("http://LOCALHOST/a", "/a"), ("http://localhost", "/"),
        ]
        try withOpenGateway { gateway, upstream throws in
            for (target, forwarded) in rows {
                let response = try gateway.get(target)
                #expect(response.status == 200, "\(target): \(response)")
                #expect(upstream.requests.last?.target == forwarded, "\(target)")
            }
        }
    }

    @Test func `an ambiguous path is rejected and reaches no upstream`() throws {
        let rows = [
            "/a/../b", "/..", "/.", "/a/.", "/a/./b", "/%2e%2e/x", "/a/%2E/b", "/.%2e/", "/%2e./", "/a/..?x", "//a",
            "/a//b",
            "/a//", "/a\\b", "/..\\a", "/a%5cb", "/a%5Cb", "/a%2fb", "/a%2Fb", "/a%00b", "/a%01", "/a%1f", "/a%7F",
            "/a%0a",
            "/a%0d%0ab", "/a%09", "/%ff", "/%c0%af", "/%c1%81", "/%e0%80%af", "/%ed%a0%80", "/%f4%90%80%80",
            "/%f8%88%80%80%80",
            "/%C3", "/%C3x", "/%80", "/%", "/%2", "/%zz", "/a%", "/a%4", "/a%2g", "/a%u0041", "/a%25b", "/%252e%252e/",
            "/..;x/", "/.;/a", "/a/..;", "/a/%2e%2e;x=1/b", "/a/.%2E;/b", "/a#b", "/a?b#c", "/#", "a", "?x", "",
            "/a%EF%BC%8Fb", "/%EF%BC%8E%EF%BC%8E/a", "/%E2%80%A5/a", "/%EF%BC%BC", "/%EF%BC%8541",
        ]
        try withOpenGateway { gateway, upstream throws in
            for target in rows {
                let (response, isClosed) = try gateway.raw("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                expectRejection(response, 400, "request_invalid", target)
                #expect(isClosed, "\(target)")
            }
            for byte: UInt8 in [0x80, 0xC3, 0xFF, 0x7F, 0x01, 0x09] {
                let client = try gateway.connect()
                try client.send(Array("GET /a".utf8) + [byte] + Array(" HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
                expectRejection(try client.response(), 400, "request_invalid", "byte \(byte)")
            }
            #expect(upstream.requests.isEmpty)
        }
    }

    @Test func `encoded slash and percent stay as text where the configuration says so`() throws {
        let routes = """
            - { name: one, match: { path: /one/* }, auth: none, upstream: api }
            - { name: two, match: { path: "/p%25q" }, auth: none, upstream: api }
            """
        let paths = "paths: { encoded_slash: keep, encoded_percent: keep }"
        try withOpenGateway(server: paths, routes: routes) { gateway, upstream throws in
            #expect(try gateway.get("/one/a%2Fb").status == 200)
            #expect(upstream.requests.last?.target == "/one/a%2Fb")
            #expect(try gateway.get("/one/100%25").status == 200)
            #expect(upstream.requests.last?.target == "/one/100%25")
            expectRejection(try gateway.get("/one/a/b"), 404, "no_route")
            expectRejection(try gateway.get("/one/a%5Cb"), 400, "request_invalid")
            expectRejection(try gateway.get("/one/%2e%2e"), 400, "request_invalid")
        }
    }

    @Test func `slashes in a row become one where the configuration says so`() throws {
        let routes = """
            - { name: one, match: { path: /one/* }, auth: none, upstream: api }
            - { name: root, match: { path: / }, auth: none, upstream: api }
            """
        try withOpenGateway(server: "paths: { repeated_slash: merge }", routes: routes) { gateway, upstream throws in
            for (target, forwarded) in [
                ("//one///a", "/one/a"), ("/one/a", "/one/a"), ("//", "/"), ("//one//%61?b//c", "/one/a?b//c"),
            ] {
                #expect(try gateway.get(target).status == 200, "\(target)")
                #expect(upstream.requests.last?.target == forwarded, "\(target)")
            }
            expectRejection(try gateway.get("//one//../a"), 400, "request_invalid")
            expectRejection(try gateway.get("//one//"), 404, "no_route")
        }
    }

    @Test func `a target longer than 8 KiB is refused as too long`() throws {
        try withOpenGateway { gateway, upstream throws in
            #expect(try gateway.get("/" + String(repeating: "a", count: 8000)).status == 200)
            expectRejection(try gateway.get("/" + String(repeating: "a", count: 8192)), 414, "request_too_large")
            expectRejection(try gateway.get("/?" + String(repeating: "a", count: 9000)), 414, "request_too_large")
            #expect(upstream.requests.count == 1)
        }
    }
}

/// Which route a request takes.
@Suite struct `Routes` {
    static let table = """
        - { name: v1, match: { path: /v1/** }, auth: none, upstream: api, rewrite: { strip_prefix: /v1 } }
        - { name: segment, match: { path: /u/*/x }, auth: none, upstream: api }
        - { name: part, match: { path: "/img-*.png" }, auth: none, upstream: api }
        - { name: middle, match: { path: /m/**/end }, auth: none, upstream: api }
        - { name: regex, match: { path_regex: "/r/[0-9]+" }, auth: none, upstream: api }
        - { name: host, match: { hosts: ["*.Example.com"], path: /h }, auth: none, upstream: api }
        - { name: exact, match: { hosts: [exact.test], path: /h }, auth: none, upstream: api }
        - { name: get, match: { path: /only, methods: [GET, PUT] }, auth: none, upstream: api }
        """

    @Test func `globs and regular expressions match whole segments, anchored and case-sensitive`() throws {
        let rows = [
            ("/v1", true), ("/v1/", true), ("/v1/a/b", true), ("/v1a", false), ("/V1/a", false), ("/u/1/x", true),
            ("/u/x", false), ("/u/1/2/x", false), ("/img-1.png", true), ("/img-.png", true), ("/img-1/2.png", false),
            ("/img-1.pngx", false), ("/m/end", true), ("/m/a/b/end", true), ("/m/a/b", false), ("/r/12", true),
            ("/r/12a", false), ("/a/r/12", false), ("/none?x=/v1/a", false),
        ]
        try withOpenGateway(routes: Self.table) { gateway, _ throws in
            for (target, isMatched) in rows {
                let response = try gateway.get(target)
                if isMatched {
                    #expect(response.status == 200, "\(target): \(response)")
                } else {
                    expectRejection(response, 404, "no_route", target)
                }
            }
        }
    }

    @Test func `a prefix is stripped before the request goes on`() throws {
        try withOpenGateway(routes: Self.table) { gateway, upstream throws in
            for (target, forwarded) in [("/v1/a/b?c=/v1", "/a/b?c=/v1"), ("/v1", "/"), ("/v1/", "/")] {
                _ = try gateway.get(target)
                #expect(upstream.requests.last?.target == forwarded, "\(target)")
            }
        }
    }

    @Test func `hosts are compared without case and port, a wildcard is one or more labels`() throws {
        let rows = [
            ("a.example.com", 200), ("A.EXAMPLE.com:8080", 200), ("a.b.example.com", 200), ("example.com", 404),
            ("aexample.com", 404), ("a.example.com.evil.test", 404), ("exact.test", 200), ("EXACT.test:1", 200),
            ("a.exact.test", 404),
        ]
        try withOpenGateway(routes: Self.table) { gateway, _ throws in
            for (host, status) in rows {
                let response = try gateway.get("/h", [("Host", host)])
                #expect(response.status == status, "\(host)")
            }
        }
    }

    @Test func `a method that a matching route does not take is 405 with Allow`() throws {
        try withOpenGateway(routes: Self.table) { gateway, upstream throws in
            #expect(try gateway.exchange("PUT", "/only").status == 200)
            let response = try gateway.exchange("DELETE", "/only")
            expectRejection(response, 405, "method_not_allowed")
            let allowed = Set((response["Allow"] ?? "").split(separator: ",").map { String($0.filter { $0 != " " }) })
            #expect(allowed.isSuperset(of: ["GET", "PUT"]) && !allowed.contains("DELETE"))
            #expect(upstream.requests.count == 1)
        }
    }

    @Test func `a method in another letter case is refused, whatever the routes say`() throws {
        let routes = """
            - { name: write, match: { path: /m/**, methods: [POST, PURGE] }, auth: none, upstream: api }
            - { name: all, match: { path: /** }, auth: none, upstream: api }
            """
        try withOpenGateway(routes: routes) { gateway, upstream throws in
            for method in ["post", "Delete", "purge", "gET"] {
                let (response, _) = try gateway.raw("\(method) /m/a HTTP/1.1\r\nHost: a\r\n\r\n")
                expectRejection(response, 400, "request_invalid", method)
                let peer = try HTTP2Peer(to: gateway.endpoint)
                let stream = try peer.outcome(of: try peer.request(["\(method) /m/a HTTP/1.1", "Host: a"], ends: true))
                #expect(stream.head.hasPrefix("HTTP/1.1 400"), "\(method): \(stream)")
            }
            try waitUntil("the log says why") { gateway.log.count { $0["reason"] == "request.method_case" } == 8 }
            #expect(upstream.requests.isEmpty)
            #expect(try gateway.exchange("PURGE", "/m/a").status == 200)
            #expect(try gateway.exchange("FOO", "/m/a").status == 200)
        }
    }

    @Test func `an absolute target that names another host than Host is refused`() throws {
        try withOpenGateway { gateway, upstream throws in
            expectRejection(try gateway.get("http://other.test/a"), 400, "request_invalid")
            expectRejection(try gateway.get("http://user@localhost/a"), 400, "request_invalid")
            #expect(upstream.requests.isEmpty)
        }
    }
}
