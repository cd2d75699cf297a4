import AppleProvider
import MartletConfig
import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

/// A response of Apple's token endpoint, and what the login makes of it.
struct ExchangeCase: Sendable, CustomTestStringConvertible {
    let status: Int
    let body: String
    let code: ErrorCode
    let disposition: AuthenticationError.Disposition

    init(_ status: Int, _ body: String, _ code: ErrorCode, _ disposition: AuthenticationError.Disposition) {
        (self.status, self.body, self.code, self.disposition) = (status, body, code, disposition)
    }

    var testDescription: String { "\(status) \(body.prefix(60))" }
}

@Suite struct ExchangeTests {
    static let code = "c0ffee00c0ffee00c0ffee00c0ffee00.0.test.AAAAAAAAAAAAAAAAAAAAAA"

    static let failures: [ExchangeCase] = [
        .init(400, #"{"error":"invalid_grant"}"#, "apple.code_rejected", .rejected),
        .init(
            400, #"{"error":"invalid_grant","error_description":"The code has expired"}"#, "apple.code_rejected",
            .rejected),
        .init(400, #"{"error":"invalid_client"}"#, "apple.invalid_client", .unavailable),
        .init(400, #"{"error":"invalid_request"}"#, "apple.invalid_request", .unavailable),
        .init(400, #"{"error":"unauthorized_client"}"#, "apple.unauthorized_client", .unavailable),
        .init(400, #"{"error":"unsupported_grant_type"}"#, "apple.unsupported_grant_type", .unavailable),
        .init(400, #"{"error":"invalid_scope"}"#, "apple.invalid_scope", .unavailable),
        .init(400, #"{"error":"something_new"}"#, "apple.api_bad_response", .unavailable),
        .init(400, #"{"error":7}"#, "apple.api_bad_response", .unavailable),
        .init(400, "<html>", "apple.api_bad_response", .unavailable),
        .init(401, #"{"error":"invalid_client"}"#, "apple.invalid_client", .unavailable),
        .init(401, #"{"error":"invalid_grant"}"#, "apple.api_bad_response", .unavailable),
        .init(429, "", "apple.api_throttled", .unavailable),
        .init(500, "<html>", "apple.api_bad_response", .unavailable),
        .init(503, "", "apple.api_bad_response", .unavailable),
        .init(200, "", "apple.api_bad_response", .unavailable),
        .init(200, "<html>", "apple.api_bad_response", .unavailable),
        .init(200, "[]", "apple.api_bad_response", .unavailable),
        .init(200, "{}", "apple.api_bad_response", .unavailable),
        .init(200, #"{"access_token":"a","token_type":"Bearer"}"#, "apple.api_bad_response", .unavailable),
        .init(200, #"{"access_token":"a","token_type":"mac","id_token":"x"}"#, "apple.api_bad_response", .unavailable),
        .init(200, #"{"access_token":"a","token_type":"Bearer","id_token":"x.y.z"}"#, "apple.malformed", .rejected),
        .init(
            200, #"{"access_token":"","token_type":"Bearer","id_token":"x.y.z"}"#, "apple.api_bad_response",
            .unavailable),
    ]

    @Test func `returns the refresh token with the client that got it`() async throws {
        let apple = ScriptedApple(200, try ScriptedApple.tokens())
        let signIn = try await Bench.withKey(apple).login(code: Self.code).get()
        #expect(signIn.grant?.client == "com.example.app")
        #expect(signIn.grant?.token.withBytes { $0 } == Array("refresh".utf8))
        let call = try #require(apple.received.first)
        #expect(apple.received.count == 1 && !call.isRepeatable)
        #expect(call.url == "https://appleid.apple.com/auth/token")
        #expect(call.fields["code"] == Self.code && call.fields["grant_type"] == "authorization_code")
        #expect(call.fields["client_id"] == "com.example.app" && call.fields["redirect_uri"] == nil)
        #expect(call.fields.count == 4)
        #expect(call.headers["User-Agent"]?.isEmpty == false)
    }

    @Test func `signs client secrets as Apple demands`() async throws {
        let apple = ScriptedApple(200, try ScriptedApple.tokens())
        _ = try await Bench.withKey(apple).login(code: Self.code).get()
        let secret = try #require(apple.received.first?.fields["client_secret"])
        let parts = secret.split(separator: ".").map(String.init)
        try #require(parts.count == 3)
        func object(_ text: String) throws -> JSONObject {
            let bytes = try #require(Base64URL.decode(text))
            return try #require(
                try JSON.parse(bytes, limits: JSONLimits(maximumDepth: 4, maximumBytes: 4096)).object)
        }
        #expect(try object(parts[0]) == ["alg": "ES256", "kid": "KEY1234567"])
        let now = Bench.now
        #expect(
            try object(parts[1]) == [
                "iss": "ABCDE12345", "iat": .integer(now - 30), "exp": .integer(now + 570),
                "aud": "https://appleid.apple.com", "sub": "com.example.app",
            ])
        let key = try PrivateKey(pem: Secret(Bench.developerKey.get().privatePEM())).publicKey
        let signature = try #require(Base64URL.decode(parts[2]))
        #expect(signature.count == 64)
        #expect(key.verify(signature, over: Array("\(parts[0]).\(parts[1])".utf8)))
    }

    @Test(arguments: failures)
    func `treats each failure as the table of errors says`(failure: ExchangeCase) async throws {
        let apple = ScriptedApple(failure.status, failure.body)
        let bench = try Bench.withKey(apple)
        let result = try await bench.login(code: Self.code)
        #expect(result.code == failure.code && result.disposition == failure.disposition)
        // Whatever the response was, the code is never sent again.
        #expect(try await bench.login(code: Self.code).code == "apple.code_reused")
        #expect(apple.received.count == 1)
    }

    @Test func `never sends a code again after an unknown outcome`() async throws {
        let apple = ScriptedApple([ScriptedApple.noResponse, .success(.init(status: 200, body: []))])
        let bench = try Bench.withKey(apple)
        let first = try await bench.login(code: Self.code)
        #expect(first.code == "apple.api_unreachable" && first.disposition == .unavailable)
        for _ in 0..<3 { #expect(try await bench.login(code: Self.code).code == "apple.code_reused") }
        #expect(apple.received.count == 1)
    }

    @Test func `sends a code once from many instances`() async throws {
        let apple = ScriptedApple(200, try ScriptedApple.tokens())
        let store = MemoryStore(clock: Bench.clock)
        let benches = try (0..<4).map { _ in try Bench(Bench.developerLines(), store: store, http: apple) }
        let codes = try await withThrowingTaskGroup(of: ErrorCode?.self) { group in
            for index in 0..<20 { group.addTask { try await benches[index % 4].login(code: Self.code).code } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count { $0 == nil } == 1)
        #expect(codes.count { $0 == "apple.code_reused" } == 19)
        #expect(apple.received.count == 1)
    }

    @Test func `accepts only tokens of the same user, client and request`() async throws {
        let cases: [(String, (inout Token) -> Void)] = [
            ("another user", { $0.claims["sub"] = "\"001234.other.0002\"" }),
            ("another client", { $0.claims["aud"] = "\"com.example.web\"" }),
            ("another access token", { $0.claims["at_hash"] = JSONText(string: ScriptedApple.halfHash("other")) }),
            ("a nonce of another request", { $0.claims["nonce"] = "\"n\"" }),
        ]
        for (name, change) in cases {
            let bench = try Bench.withKey(ScriptedApple(200, try ScriptedApple.tokens(change)))
            let result = try await bench.login(code: Self.code)
            #expect(result.code == "apple.exchange_mismatch" && result.disposition == .rejected, "\(name)")
        }
        let foreign = try Bench.withKey(
            ScriptedApple(200, try ScriptedApple.tokens { $0.claims["aud"] = "\"com.attacker\"" }))
        #expect(try await foreign.login(code: Self.code).code == "apple.bad_audience")
    }

    @Test func `demands the login's nonce, unless the token knows none`() async throws {
        for (supported, nonce, code) in [
            ("true", "\"n\"", nil), ("true", "\"other\"", "apple.exchange_mismatch"),
            ("true", nil, "apple.exchange_mismatch"), ("false", nil, nil),
        ] as [(JSONText, JSONText?, ErrorCode?)] {
            let tokens = try ScriptedApple.tokens { token in
                token.claims["nonce"] = nonce
                token.claims["nonce_supported"] = supported
            }
            let bench = try Bench.withKey(ScriptedApple(200, tokens))
            let request = Bench.Request(texts: ["authorization_code": Self.code, "nonce": "n"])
            #expect(try await bench.login(request) { $0.claims["nonce"] = "\"n\"" }.code == code)
        }
    }

    @Test func `works without at_hash, and without a refresh token`() async throws {
        let tokens = try ScriptedApple.tokens(refresh: nil) { $0.claims["at_hash"] = nil }
        let signIn = try await Bench.withKey(ScriptedApple(200, tokens)).login(code: Self.code).get()
        #expect(signIn.grant == nil)
    }

    @Test func `happens only with a code and a key`() async throws {
        let apple = ScriptedApple([])
        #expect(try await Bench.withKey(apple).login().get().grant == nil)
        #expect(try await Bench(http: apple).login(code: Self.code).get().grant == nil)
        #expect(apple.received.isEmpty)
        let wrong = try await Bench.withKey(apple).login(Bench.Request(texts: ["authorization_code": Self.code])) {
            $0.claims["c_hash"] = JSONText(string: ScriptedApple.halfHash("another code"))
        }
        #expect(wrong.code == "apple.code_mismatch" && apple.received.isEmpty)
    }

    @Test func `needs the store, so that no code is sent twice`() async throws {
        let apple = ScriptedApple(200, try ScriptedApple.tokens())
        let bench = try Bench(Bench.developerLines(), store: BrokenStore(), http: apple)
        let result = try await bench.login(code: Self.code)
        #expect(result.code == "apple.store_unavailable" && result.disposition == .unavailable)
        #expect(apple.received.isEmpty)
    }
}

@Suite struct GrantTests {
    private static let grant = ProviderGrant(client: "com.example.web", token: Secret("refresh"))

    private func check(_ apple: ScriptedApple) async throws -> Result<GrantState, AuthenticationError> {
        let bench = try Bench.withKey(apple)
        do throws(AuthenticationError) {
            return .success(try await bench.provider.check(Self.grant, of: "001", until: .never))
        } catch {
            return .failure(error)
        }
    }

    private func revoke(_ apple: ScriptedApple) async throws -> AuthenticationError? {
        let bench = try Bench.withKey(apple)
        do throws(AuthenticationError) {
            try await bench.provider.revoke(Self.grant, until: .never)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a check asks with the client of the grant`() async throws {
        let apple = ScriptedApple(200, try ScriptedApple.tokens(refresh: nil))
        #expect(try await check(apple).get() == .valid)
        let call = try #require(apple.received.first)
        #expect(call.fields["grant_type"] == "refresh_token" && call.fields["refresh_token"] == "refresh")
        #expect(call.fields["client_id"] == "com.example.web")
    }

    @Test func `only invalid_grant says that the consent is withdrawn`() async throws {
        #expect(try await check(ScriptedApple(400, #"{"error":"invalid_grant"}"#)).get() == .revoked)
        for failure in ExchangeTests.failures where !failure.body.contains("invalid_grant") || failure.status != 400 {
            guard failure.status != 200 || !failure.body.contains("x.y.z") else { continue }
            let result = try await check(ScriptedApple(failure.status, failure.body))
            guard case .failure(let error) = result else {
                Issue.record("\(failure.testDescription) is \(result)")
                continue
            }
            #expect(error.disposition == (failure.status == 429 ? .throttled : .unavailable))
        }
        guard case .failure(let error) = try await check(ScriptedApple([ScriptedApple.noResponse])) else {
            Issue.record("no response is a state")
            return
        }
        #expect(error.disposition == .unavailable)
    }

    @Test func `a revocation succeeds with an empty body, also for a token that was revoked before`() async throws {
        let apple = ScriptedApple(200, "")
        #expect(try await revoke(apple) == nil)
        let call = try #require(apple.received.first)
        #expect(call.url == "https://appleid.apple.com/auth/revoke")
        #expect(call.fields["token"] == "refresh" && call.fields["token_type_hint"] == "refresh_token")
        #expect(call.fields["client_id"] == "com.example.web" && call.fields["client_secret"] != nil)
        #expect(try await revoke(ScriptedApple(400, #"{"error":"invalid_grant"}"#)) == nil)
        for (status, body) in [(400, #"{"error":"invalid_client"}"#), (500, "<html>"), (429, ""), (302, "")] {
            let error = try await revoke(ScriptedApple(status, body))
            #expect(error?.disposition == (status == 429 ? .throttled : .unavailable), "\(status)")
        }
        #expect(try await revoke(ScriptedApple([ScriptedApple.noResponse]))?.disposition == .unavailable)
    }

    @Test func `grants are checked only if the configuration says so`() throws {
        #expect(try Bench.withKey(ScriptedApple([])).provider.checkSchedule == nil)
        let bench = try Bench.withKey(ScriptedApple([]), [("check", .block([("every", .text("48h"))]))])
        #expect(bench.provider.checkSchedule?.every == .seconds(172_800))
        #expect(bench.provider.checkSchedule?.spread == .seconds(43_200))
        #expect(bench.provider.checkSchedule?.rate.interval == .milliseconds(200))
    }
}
