import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletRouter
import Testing

@testable import MartletAuthenticator

@Suite struct IdentityHeadersTests {
    private static let now = UnixTime(seconds: 1_000)
    private static let tokens = Samples.handle("tokens", .bearerPrefix("t-"))
    private static let ada = "X-Auth-Subject: tokens:ada\r\nX-Auth-Provider: tokens\r\n"

    /// Rules with one route to each upstream.
    private func rules(
        headers: [HeaderConfiguration]? = nil, upstreams: [String] = ["api"], assertion: AssertionSigner? = nil
    ) -> AuthenticationRules {
        let routes = upstreams.map { upstream in
            var route = Samples.route("to \(upstream)", .optional(providers: ["tokens"]), upstream: upstream)
            route.setHeaders = headers
            return route
        }
        return Samples.rules(routes, providers: [Self.tokens], upstreams: upstreams, assertion: assertion)
    }

    private func write(
        _ rules: AuthenticationRules, _ principal: Principal?, route: Int = 0
    ) -> (text: String, headers: IdentityHeaders) {
        var block = ByteBuffer()
        let headers = rules.writeIdentityHeaders(of: principal, route: route, at: Self.now, into: &block)
        return (String(decoding: block.array, as: UTF8.self), headers)
    }

    /// The claims of the assertion in a header line; the router's tests verify its signature.
    private func claims(_ line: Substring) throws -> JSONObject {
        // The line break is one character.
        let parts = line.dropLast().split(separator: "." as Character)
        try #require(parts.count == 3 && line.hasSuffix("\r\n"))
        let payload = try #require(Base64URL.decode(String(parts[1])))
        return try #require(try JSON.parse(payload, limits: JSONLimits(maximumDepth: 8, maximumBytes: 8_192)).object)
    }

    // MARK: Without an assertion

    @Test func `a block depends on the principal alone, and may be reused for any time`() {
        let plain = write(rules(), Samples.principal())
        #expect(plain.text == Self.ada && plain.headers.expires == .max && plain.headers.dropped.isEmpty)
        let mail = write(rules(), Samples.principal(claims: ["email": "a@example.com", "email_verified": true]))
        #expect(mail.text == "\(Self.ada)X-Auth-Email: a@example.com\r\n" && mail.headers.expires == .max)
    }

    @Test func `an anonymous request gets only headers that need no principal`() {
        let none = write(rules(), nil)
        #expect(none.text.isEmpty && none.headers.expires == .max && none.headers.dropped.isEmpty)
        let headers = [
            Samples.header("X-Subject", .attribute(.subject)), Samples.header("X-Route", .attribute(.route)),
            Samples.header("X-Tier", .claim("tier"), fallback: "free"),
        ]
        let own = write(rules(headers: headers), nil)
        #expect(own.text == "X-Route: to api\r\nX-Tier: free\r\n" && own.headers.dropped.isEmpty)
    }

    @Test func `headers whose value does not fit are left out and reported in order`() {
        let headers = [
            Samples.header("X-Address", .claim("address")), Samples.header("X-Tier", .claim("tier")),
            Samples.header("X-Roles", .claim("roles")),
        ]
        let principal = Samples.principal(claims: ["tier": "gold", "roles": ["a"], "address": ["city": "Bern"]])
        let written = write(rules(headers: headers), principal)
        #expect(written.text == "X-Tier: gold\r\n")
        #expect(written.headers.dropped.map(\.name) == ["X-Address", "X-Roles"])
        #expect(written.headers.dropped.map(\.reason) == ["header.not_scalar", "header.not_scalar"])
    }

    @Test func `a block is appended to what the buffer has`() {
        var block = ByteBuffer()
        block.append("A: b\r\n")
        _ = rules().writeIdentityHeaders(of: Samples.principal(), route: 0, at: Self.now, into: &block)
        let text = String(decoding: block.array, as: UTF8.self)
        #expect(text == "A: b\r\n\(Self.ada)")
    }

    // MARK: With an assertion

    @Test func `the assertion is the last header, and its audience is the upstream of the route`() throws {
        let rules = rules(upstreams: ["api", "files"], assertion: try Samples.assertion(ttl: 60))
        for (route, upstream) in ["api", "files"].enumerated() {
            let written = write(rules, Samples.principal(), route: route)
            let prefix = "\(Self.ada)X-Auth-Assertion: "
            try #require(written.text.hasPrefix(prefix))
            let claims = try claims(written.text.dropFirst(prefix.count))
            #expect(claims["aud"]?.string == upstream && claims["sub"]?.string == "tokens:ada")
            #expect(claims["iat"]?.int64 == 1_000 && claims["exp"]?.int64 == 1_060)
            #expect(written.headers.expires == 1_030 && written.headers.dropped.isEmpty)
        }
    }

    @Test func `a configured audience replaces the upstream`() throws {
        let rules = rules(assertion: try Samples.assertion(ttl: 60, audience: "everyone"))
        let written = write(rules, Samples.principal())
        let prefix = "\(Self.ada)X-Auth-Assertion: "
        try #require(written.text.hasPrefix(prefix))
        let claims = try claims(written.text.dropFirst(prefix.count))
        #expect(claims["aud"]?.string == "everyone")
    }

    @Test func `an anonymous request gets no assertion`() throws {
        let written = write(rules(assertion: try Samples.assertion(ttl: 60)), nil)
        #expect(written.text.isEmpty && written.headers.expires == .max && written.headers.dropped.isEmpty)
    }

    @Test func `the assertion of an expired credential is left out and reported`() throws {
        let rules = rules(assertion: try Samples.assertion(ttl: 60))
        let expired = write(rules, Samples.principal(expires: 1_000))
        #expect(expired.text == Self.ada && expired.headers.expires == 1_030)
        #expect(expired.headers.dropped.map(\.name) == ["X-Auth-Assertion"])
        #expect(expired.headers.dropped.map(\.reason) == ["header.expired"])
        // One second before, it has one.
        let valid = write(rules, Samples.principal(expires: 1_001))
        #expect(valid.text.hasPrefix("\(Self.ada)X-Auth-Assertion: ") && valid.headers.dropped.isEmpty)
    }

    // MARK: In the authenticator

    @Test func `a decision is cached only as long as its assertion may be reused`() throws {
        var bench = AuthenticatorBench()
        bench.authenticator = Authenticator(rules(assertion: try Samples.assertion(ttl: 60)))
        let first = bench.decide("to api", AdmissionCase.token, result: AuthenticatorBench.verified())
        let written = bench.headers
        bench.advance(seconds: 29)
        let second = bench.decide("to api", AdmissionCase.token)
        let (cached, hits) = (bench.headers, bench.authenticator.hits)
        #expect(first == .authorized(consumesCredential: true) && second == first && cached == written && hits == 1)
        bench.advance(seconds: 1)
        let third = bench.decide("to api", AdmissionCase.token)
        let renewed = bench.headers
        let (allHits, misses) = (bench.authenticator.hits, bench.authenticator.misses)
        // The principal is cached until the credential expires: no verification is needed.
        #expect(third == first && renewed != written && allHits == 1 && misses == 0)
        #expect(renewed.hasPrefix("\(Self.ada)X-Auth-Assertion: "))
    }

    @Test func `the headers that were left out are those of the last block that was written`() {
        var bench = AuthenticatorBench()
        bench.authenticator = Authenticator(rules(headers: [Samples.header("X-Address", .claim("address"))]))
        let claims: JSONObject = ["address": ["city": "Bern"]]
        let decided = bench.decide("to api", AdmissionCase.token, result: Samples.verified(claims: claims))
        let (headers, dropped) = (bench.headers, bench.authenticator.droppedHeaders.map(\.name))
        #expect(decided == .authorized(consumesCredential: true) && headers.isEmpty && dropped == ["X-Address"])
        _ = bench.decide("to api", nil)
        let afterwards = bench.authenticator.droppedHeaders.map(\.name)
        #expect(afterwards.isEmpty)
    }
}
