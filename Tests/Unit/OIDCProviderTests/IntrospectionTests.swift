import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import OIDCProvider
import Testing

@Suite struct IntrospectionTests {
    static let url = "https://issuer.example/introspect"
    static let now = Bench.now
    static func yaml(_ more: String = "") -> String {
        """
        issuer: https://issuer.example
        audiences: [api]
        accepts: [{ bearer_prefix: "opq_" }, { bearer_prefix: "tok-" }]
        introspection: { url: "https://issuer.example/introspect", client_id: "gate:way", client_secret: "s c/r%t" }
        \(more)
        """
    }

    static let response: JSONObject = [
        "active": true, "aud": "api", "sub": "user-1", "iss": "https://issuer.example", "scope": "read write",
        "exp": .integer(now + 3600), "iat": .integer(now - 10), "token_type": "Bearer", "client_id": "app",
    ]

    static func response(_ changes: KeyValuePairs<String, JSONValue?>) -> JSONObject {
        var response = response
        for (name, value) in changes { response[name] = value }
        return response
    }

    static func bench(_ response: JSONObject = response, _ more: String = "") throws -> Bench {
        let bench = try Bench(yaml(more))
        bench.issuer.respond(at: url, response)
        return bench
    }

    @Test func `asks about a token with a configured prefix, as a client of the issuer`() async throws {
        let bench = try Self.bench()
        let identity = try await bench.identity("opq_abc-._~+/=")
        #expect(identity.providerSubject == "user-1" && identity.issuer == Bench.issuer)
        #expect(identity.claims["scope"] == ["read", "write"] && identity.claims["client_id"] == "app")
        #expect(!identity.claims.has("active") && !identity.claims.has("token_type"))
        #expect(identity.expiresAt.seconds == Self.now + 3600)
        let call = try #require(bench.issuer.received.first)
        #expect(bench.issuer.received.count == 1 && call.url == Self.url)
        #expect(call.fields == ["token": "opq_abc-._~+/=", "token_type_hint": "access_token"])
        // Form-encoded first, so that a colon in the id is not the separator: gate%3Away:s+c%2Fr%25t
        #expect(call.headers["Authorization"] == "Basic Z2F0ZSUzQXdheTpzK2MlMkZyJTI1dA==")
    }

    @Test func `sends no other token anywhere`() async throws {
        let bench = try Self.bench()
        for token in [
            "opq", "OPQ_abc", "opaque", "xopq_abc", "tok_", "eyJhbGciOiJSUzI1NiJ9.e30.AAAA", "opq\u{5F}".uppercased(),
        ] {
            #expect(await bench.failure(token)?.disposition == .rejected, "\(token)")
        }
        #expect(bench.issuer.received(at: Self.url).isEmpty)
        #expect(try await bench.failureCode(Bench.token()) == nil)
        #expect(bench.issuer.received(at: Self.url).isEmpty)
        // Nor one that no bearer token is like, or that is too long.
        #expect(await bench.failureCode("opq_a b") == "oidc.malformed")
        #expect(await bench.failureCode("opq_" + String(repeating: "a", count: 16_384)) == "oidc.token_too_large")
        #expect(bench.issuer.received(at: Self.url).isEmpty)
        #expect(
            bench.provider.accepts == [
                .bearerJWT(issuers: [Bench.issuer]), .bearerPrefix("opq_"), .bearerPrefix("tok-"),
            ])
    }

    static let bad: [(KeyValuePairs<String, JSONValue?>, ErrorCode?)] = [
        (["active": false], "oidc.inactive"), (["aud": nil], "oidc.bad_audience"),
        (["aud": "other"], "oidc.bad_audience"),
        (["aud": ["other", "api"]], nil), (["aud": []], "oidc.bad_audience"),
        (["iss": "https://evil.example"], "oidc.bad_issuer"), (["iss": 1], "oidc.bad_issuer"), (["iss": nil], nil),
        (["sub": nil], "oidc.bad_subject"), (["sub": ""], "oidc.bad_subject"), (["sub": "a\u{0}"], "oidc.bad_subject"),
        (["exp": .integer(now)], "oidc.expired"), (["exp": .integer(now - 1)], "oidc.expired"),
        (["exp": .integer(-1)], "oidc.bad_times"), (["exp": .integer(.max)], "oidc.bad_times"),
        (["exp": .number(JSONNumber(1_900_000_000.5) ?? JSONNumber(0))], nil), (["exp": .null, "iat": .null], nil),
        (["exp": "1900000000"], "oidc.bad_times"), (["exp": nil], nil), (["iat": nil], nil),
        (["iat": nil, "exp": nil], nil),
        (["iat": .integer(now + 61)], "oidc.issued_in_future"), (["iat": .integer(-5)], "oidc.bad_times"),
        (["nbf": .integer(now + 61)], "oidc.not_yet_valid"), (["nbf": .integer(.max)], "oidc.bad_times"),
        (["iat": .integer(now - 86_401)], "oidc.too_old"),
        (["cnf": ["jkt": "x"]], "oidc.bound_token"), (["token_type": "DPoP"], "oidc.bound_token"),
        (["token_type": "refresh"], "oidc.wrong_token_kind"), (["token_use": "refresh_token"], "oidc.wrong_token_kind"),
        (["token_type": nil], nil), (["token_type": "bearer"], nil), (["scope": 1], "oidc.bad_claim"),
    ]

    @Test func `believes no more than a token would be`() async throws {
        for (changes, code) in Self.bad {
            let failure = await (try Self.bench(Self.response(changes))).failure("opq_1")
            #expect(failure?.code == code, "\(changes)")
            if failure != nil { #expect(failure?.disposition == .rejected) }
        }
        let bench = try Self.bench(Self.response(["azp": nil]), "authorized_parties: [app]")
        #expect(await bench.failureCode("opq_1") == "oidc.bad_authorized_party")
    }

    @Test func `a response that proves nothing is an outage, not a bad token`() async throws {
        let text = Array("{\"active\":\"true\"}".utf8)
        let cases: [(Int, [UInt8], ErrorCode)] = [
            (401, Array("{}".utf8), "oidc.introspection_refused"), (403, [], "oidc.introspection_refused"),
            (200, text, "oidc.introspection_bad_response"), (200, [], "oidc.introspection_bad_response"),
            (200, Array("[]".utf8), "oidc.introspection_bad_response"),
            (200, Array("{}".utf8), "oidc.introspection_bad_response"),
            (200, Array("{\"active\":true,\"active\":true}".utf8), "oidc.introspection_bad_response"),
            (404, [], "oidc.introspection_bad_response"), (500, [], "oidc.introspection_bad_response"),
            (200, [UInt8](repeating: 0x20, count: 256 * 1024 + 1), "oidc.introspection_unreachable"),
        ]
        for (status, body, code) in cases {
            let bench = try Bench(Self.yaml())
            bench.issuer.respond(at: Self.url, status, body)
            let failure = await bench.failure("opq_1")
            #expect(failure?.code == code && failure?.disposition == .unavailable, "\(status)")
            #expect(bench.provider.health.state == .degraded && bench.provider.health.detail.contains(code.rawValue))
        }
        let bench = try Bench(Self.yaml())
        bench.issuer.fail(at: Self.url)
        #expect(await bench.failureCode("opq_1") == "oidc.introspection_unreachable")
        bench.issuer.respond(at: Self.url, 429, [], retryAfter: .seconds(7))
        let throttled = await bench.failure("opq_1")
        #expect(throttled?.code == "oidc.introspection_throttled" && throttled?.retryAfter == .seconds(7))
        #expect(throttled?.disposition == .unavailable)
    }

    @Test func `responses may be used again as long as the configuration says, and the token is valid`() async throws {
        func reusable(_ cache: String?, _ response: JSONObject = Self.response) async throws -> Int64 {
            let line = cache.map { ", cache: \($0)" } ?? ""
            let yaml = Self.yaml().replacing("\"s c/r%t\"", with: "\"s c/r%t\"\(line)")
            let bench = try Bench(yaml)
            bench.issuer.respond(at: Self.url, response)
            return try await bench.identity("opq_1").reusableUntil.seconds - Self.now
        }
        #expect(try await reusable(nil) == 0)
        #expect(try await reusable("0s") == 0)
        #expect(try await reusable("60s") == 60)
        #expect(try await reusable("60s", Self.response(["exp": .integer(Self.now + 30)])) == 30)
        #expect(try await reusable("60s", Self.response(["exp": nil])) == 60)
    }

    @Test func `an event loop leaves the question to another thread`() throws {
        let bench = try Self.bench()
        guard
            case .undecided = try bench.provider.verify(Credential(bearer: Array("opq_1".utf8)), in: bench.context)
        else {
            Issue.record("decided")
            return
        }
    }

    @Test func `check --online asks about a token that no one has`() async throws {
        let bench = try Self.bench(["active": false])
        #expect(await bench.provider.checkOnline(until: .never).map(\.failure) == [nil, nil, nil])
        #expect(bench.issuer.received(at: Self.url).map { $0.fields["token"] } == ["opq_martlet-check-online"])
        bench.issuer.respond(at: Self.url, 401, [])
        #expect(await bench.provider.checkOnline(until: .never).last?.failure == "oidc.introspection_refused")
        bench.issuer.respond(at: Self.url, ["active": true])
        #expect(await bench.provider.checkOnline(until: .never).last?.failure == "oidc.introspection_bad_response")
    }
}
