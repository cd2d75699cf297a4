import MartletTesting
import Testing

/// A known caller who may not is 403; what is asked is asked of verified claims alone.
@Suite struct `Policy` {
    static func routes(_ conditions: [String]) -> String {
        conditions.enumerated().map { index, condition in
            """
            - name: r\(index)
              match: { path: /\(index) }
              auth: { providers: [apple] }
              authorize:
                - \(condition)
              upstream: api
            """
        }.joined(separator: "\n")
    }

    @Test func `each condition admits and refuses`() throws {
        let rows: [(String, Bool)] = [
            ("{ claim: email_verified, equals: true }", true),
            ("{ claim: email_verified, equals: false }", false),
            ("{ claim: email_verified, equals: \"true\" }", false),
            ("{ claim: email, equals: someone@example.com }", true),
            ("{ claim: email, equals: Someone@example.com }", false),
            ("{ claim: email, in: [a@b, someone@example.com] }", true),
            ("{ claim: email, in: [a@b] }", false),
            ("{ claim: email, matches: \"[^@]+@example\\\\.com\" }", true),
            ("{ claim: email, matches: \"example\" }", false),
            ("{ claim: email, exists: true }", true),
            ("{ claim: email, exists: false }", false),
            ("{ claim: nothing, exists: false }", true),
            ("{ claim: nothing, equals: x }", false),
            ("{ claim: nothing, equals: x, not: true }", true),
            ("{ claim: email_verified, equals: true, not: true }", false),
            ("{ claim: iat, gt: 1000 }", true),
            ("{ claim: iat, lt: 1000 }", false),
            ("{ any: [{ claim: nothing, exists: true }, { claim: email, exists: true }] }", true),
            ("{ any: [{ claim: nothing, exists: true }, { claim: email, exists: false }] }", false),
        ]
        try withAppleGateway(routes: Self.routes(rows.map(\.0))) { gateway, _, apple throws in
            let token = try apple.token()
            for (index, row) in rows.enumerated() {
                let response = try gateway.get("/\(index)", bearer(token))
                if row.1 {
                    #expect(response.status == 200, "\(row.0): \(response)")
                } else {
                    expectRejection(response, 403, "not_allowed", row.0)
                    #expect(response["WWW-Authenticate"]?.hasPrefix("Bearer ") == true)
                    #expect(response["WWW-Authenticate"]?.contains(#"error="insufficient_scope""#) == true, "\(row.0)")
                }
            }
        }
    }

    @Test func `all conditions of a route must hold`() throws {
        let both = "{ claim: email_verified, equals: true }\n    - { claim: email, equals: other@example.com }"
        try withAppleGateway(routes: Self.routes([both])) { gateway, upstream, apple throws in
            expectRejection(try gateway.get("/0", bearer(apple.token())), 403, "not_allowed")
            let other = try apple.token { $0.claims["email"] = "\"other@example.com\"" }
            #expect(try gateway.get("/0", bearer(other)).status == 200)
            #expect(upstream.requests.count == 1)
        }
    }

    @Test func `a route of any kind wants a credential unless it says otherwise`() throws {
        let routes = "- { name: default, match: { path: /** }, upstream: api }"
        try withAppleGateway(routes: routes) { gateway, upstream, apple throws in
            expectUnauthorized(try gateway.get("/"), "credential_missing")
            #expect(try gateway.get("/", bearer(apple.token())).status == 200)
            #expect(upstream.requests.count == 1)
        }
    }

    @Test func `the first matching route decides`() throws {
        let routes = """
            - { name: open, match: { path: /a/open }, auth: none, upstream: api }
            - { name: closed, match: { path: /a/** }, upstream: api }
            - { name: never, match: { path: /a/never }, auth: none, upstream: api }
            """
        try withAppleGateway(routes: routes) { gateway, _, _ throws in
            #expect(try gateway.get("/a/open").status == 200)
            expectUnauthorized(try gateway.get("/a/never"), "credential_missing")
            expectUnauthorized(try gateway.get("/a/open/"), "credential_missing")
            expectUnauthorized(try gateway.get("/a/x?/a/open"), "credential_missing")
        }
    }
}
