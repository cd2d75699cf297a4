import MartletTesting
import Testing

/// Routes that redirect, or have a response of their own.
@Suite struct `Route responses` {
    private static let routes = """
        - { name: old, match: { path: /old/** }, auth: none, redirect: { to: "https://www.example.com$path?$query", status: 308 } }
        - { name: moved, match: { path: /moved/** }, auth: none, redirect: { to: "/new$path?from=$path&$query" } }
        - name: secure
          match: { path: /secure/**, hosts: [a.example, "*.a.example"] }
          auth: none
          redirect: { to: "https://$host$path", status: 301 }
        - { name: closed, match: { path: /beta/** }, auth: none, respond: { status: 503, body: "<p>soon</p>", content_type: text/html } }
        - { name: empty, match: { path: /empty }, auth: none, respond: { status: 204 } }
        - { name: members, match: { path: /members/** }, auth: { providers: [apple] }, redirect: { to: "https://members.example$path" } }
        - { name: rest, match: { path: /** }, auth: none, upstream: api }
        """

    @Test func `are sent on a connection that is kept, with and without a body`() throws {
        try withAppleGateway(routes: Self.routes) { gateway, upstream, _ throws in
            let client = try gateway.connect()
            let redirected = try client.exchange("GET", "/old/%61?b=c")
            #expect(redirected.status == 308 && redirected["Location"] == "https://www.example.com/old/a?b=c")
            #expect(redirected["Content-Length"] == "0" && redirected["Connection"] == nil)
            #expect(try client.exchange("GET", "/old/x")["Location"] == "https://www.example.com/old/x")
            let moved = try client.exchange("GET", "/moved/a&b?c=d")
            #expect(moved.status == 307 && moved["Location"] == "/new/moved/a&b?from=/moved/a%26b&c=d")
            let closed = try client.exchange("GET", "/beta/x")
            #expect(closed.status == 503 && closed["Content-Type"] == "text/html" && closed.text == "<p>soon</p>")
            try client.send("POST", "/beta/x", [("Content-Length", "5")])
            try client.send("hello")
            #expect(try client.response().text == "<p>soon</p>")
            let empty = try client.exchange("GET", "/empty")
            #expect(empty.status == 204 && empty["Content-Length"] == nil && empty.body.isEmpty)
            #expect(try client.exchange("GET", "/other").text == "ok")
            #expect(upstream.requests.count == 1)
        }
    }

    @Test func `to HEAD have no body, and the connection is kept`() throws {
        try withAppleGateway(routes: Self.routes) { gateway, _, _ throws in
            let client = try gateway.connect()
            try client.send("HEAD /beta/x HTTP/1.1\r\nHost: a\r\n\r\nGET /old/x HTTP/1.1\r\nHost: a\r\n\r\n")
            let head = try client.response(to: "HEAD")
            #expect(head.status == 503 && head["Content-Length"] == "11")
            #expect(try client.response().status == 308)
        }
    }

    @Test func `come behind the authenticator`() throws {
        try withAppleGateway(routes: Self.routes) { gateway, _, apple throws in
            expectUnauthorized(try gateway.get("/members/x"), "credential_missing")
            let response = try gateway.get("/members/x", bearer(try apple.token()))
            #expect(response.status == 307 && response["Location"] == "https://members.example/members/x")
        }
    }

    @Test func `never lead to another host`() throws {
        try withAppleGateway(routes: Self.routes) { gateway, _, _ throws in
            for path in ["//evil.example/old/x", "/old//evil.example", "/old/\\evil.example", "/old/%5Cevil.example"] {
                #expect(try gateway.get(path).status == 400, "\(path)")
            }
            for (host, location) in [
                ("a.example", "https://a.example/secure/x"), ("b.a.example:8080", "https://b.a.example/secure/x"),
                ("evil.example", nil), ("a.example.evil.example", nil),
            ] as [(String, String?)] {
                let client = try gateway.connect()
                try client.send("GET /secure/x HTTP/1.1\r\nHost: \(host)\r\n\r\n")
                #expect(try client.response()["Location"] == location, "\(host)")
            }
            let split = try gateway.get("/old/x?a%0d%0aSet-Cookie:b")
            #expect(
                split["Location"] == "https://www.example.com/old/x?a%0d%0aSet-Cookie:b" && split["Set-Cookie"] == nil)
        }
    }

    @Test func `are the same over HTTP/2`() throws {
        try withAppleGateway(routes: Self.routes) { gateway, _, _ throws in
            let caller = try HTTP2Caller(to: gateway)
            let redirected = try caller.response(caller.ask("GET", "/old/x?a=b"))
            #expect(redirected.status == 308 && redirected.body.isEmpty)
            #expect(redirected.head.lowercased().contains("location: https://www.example.com/old/x?a=b\r\n"))
            let closed = try caller.response(caller.ask("GET", "/beta/x"))
            #expect(closed.status == 503 && closed.body == "<p>soon</p>")
            let head = try caller.response(caller.ask("HEAD", "/beta/x"))
            #expect(head.status == 503 && head.body.isEmpty && head.isWhole)
            #expect(try caller.response(caller.ask("GET", "/empty")).status == 204)
        }
    }
}
