import AppleProvider
import MartletCore
import MartletProvider
import MartletTesting
import Testing

@Suite struct ProviderTests {
    static let badBlocks: [([(String, Bench.Value)], ErrorCode)] = [
        ([("audiences", .list([]))], "config.bad_value"), ([("audiences", .list([""]))], "config.bad_value"),
        ([("audiences", .text("com.example.app"))], "config.wrong_type"),
        ([("audience", .list(["a"]))], "config.unknown_key"),
        ([("issuers", .list([]))], "config.bad_value"),
        ([("jwks_url", .text("http://appleid.apple.com/auth/keys"))], "config.bad_url"),
        ([("jwks_url", .text("ftp://appleid.apple.com"))], "config.bad_url"),
        ([("base_url", .text("http://example.com"))], "config.bad_url"),
        ([("algorithms", .list(["HS256"]))], "config.bad_value"),
        ([("algorithms", .list(["none"]))], "config.bad_value"),
        ([("algorithms", .list([]))], "config.bad_value"), ([("leeway", .text("10m"))], "config.bad_duration"),
        ([("max_age", .text("0s"))], "config.bad_duration"), ([("timeout", .text("5"))], "config.bad_duration"),
        ([("nonce", .text("maybe"))], "config.bad_value"),
        ([("nonce_form", .text("sha256"))], "config.bad_value"),
        ([("login_max_age", .text("0s"))], "config.bad_duration"),
        ([("login_max_age", .text("2d"))], "config.bad_duration"),
    ]

    @Test(arguments: badBlocks)
    func `rejects a block that would be unsafe or is not understood`(lines: [(String, Bench.Value)], code: ErrorCode) {
        #expect { try Bench(lines) } throws: { ($0 as? Bench.ConfigurationRejected)?.codes.contains(code) == true }
    }

    @Test(arguments: [
        "http://127.0.0.1:8080/keys", "http://localhost/keys", "http://[::1]:1/keys", "https://example.com/keys",
    ])
    func `takes keys from https and from this machine`(url: String) throws {
        _ = try Bench([("jwks_url", .text(url))])
    }

    @Test func `claims tokens by their issuer`() throws {
        #expect(try Bench().provider.accepts == [.bearerJWT(issuers: ["https://appleid.apple.com"])])
        let issuers = ["https://a.example", "https://b.example"]
        #expect(try Bench([("issuers", .list(issuers))]).provider.accepts == [.bearerJWT(issuers: issuers)])
    }

    @Test func `may be asked on an event loop`() throws { #expect(try Bench().provider.isQuick) }

    @Test func `leeway and max_age move the limits`() async throws {
        let now = Int(Bench.now)
        let lenient = try Bench([("leeway", .text("60s")), ("max_age", .text("10m"))])
        let expired = try Bench.token { $0.claims["exp"] = JSONText(now - 59) }
        #expect(try await lenient.identity(expired).expiresAt.seconds == Bench.now + 1)
        #expect(try await lenient.failureCode(Bench.token { $0.claims["exp"] = JSONText(now - 60) }) == "apple.expired")
        let old = try Bench.token { $0.claims["iat"] = JSONText(now - 600) }
        #expect(try await lenient.identity(old).expiresAt.seconds == Bench.now + 1)
        #expect(
            try await lenient.failureCode(Bench.token { $0.claims["iat"] = JSONText(now - 601) }) == "apple.too_old")
    }

    @Test func `decides immediately when the key is known and not otherwise`() async throws {
        let bench = try Bench()
        let credential = Credential(bearer: Array(try Bench.token().utf8))
        guard case .undecided = try bench.provider.verify(credential, in: Bench.context) else {
            Issue.record("decided without keys")
            return
        }
        await bench.provider.start()
        defer { Task { await bench.provider.shutdown() } }
        guard case .authenticated(let identity) = try bench.provider.verify(credential, in: Bench.context) else {
            Issue.record("undecided with keys")
            return
        }
        #expect(identity.issuer == "https://appleid.apple.com")
        let forged = Credential(bearer: Array(try Bench.token(by: SigningKey("RSAKEY1")).utf8))
        #expect { try bench.provider.verify(forged, in: Bench.context) } throws: {
            ($0 as? AuthenticationError)?.code == "apple.bad_signature"
        }
    }

    @Test func `an outage is not a bad credential`() async throws {
        let bench = try Bench()
        bench.issuer.respond(with: nil)
        do {
            _ = try await bench.identity(Bench.token())
            Issue.record("accepted without keys")
        } catch let error as AuthenticationError {
            #expect(error.code == "apple.keys_unavailable")
            #expect(error.disposition == .unavailable)
        }
        #expect(bench.provider.health.state == .unavailable)
    }

    @Test func `a good token goes on while Apple is down`() async throws {
        let bench = try Bench()
        #expect(try await bench.failureCode(Bench.token()) == nil)
        bench.issuer.respond(with: nil)
        #expect(try await bench.failureCode(Bench.token()) == nil)
        #expect(try await bench.failureCode(Bench.token(by: Bench.otherKey.get())) == nil)
        #expect(bench.provider.health.state == .ready)
    }

    @Test func `uses no key that Apple's document says is for something else`() async throws {
        let (key, other) = (try Bench.key.get(), try Bench.otherKey.get())
        func document(_ entries: [[String: String]]) -> [UInt8] {
            let keys = entries.map { "{" + $0.map { "\"\($0.key)\":\"\($0.value)\"" }.joined(separator: ",") + "}" }
            return Array("{\"keys\":[\(keys.joined(separator: ","))]}".utf8)
        }
        for entry in [
            try key.jwk(["use": "enc"]), try key.jwk(["alg": "PS256"]), try key.jwk(["kty": "oct"]),
            try key.jwk(["e": "Aw"]),
        ] {
            let bench = try Bench(document: document([entry, try other.jwk()]))
            #expect(try await bench.failureCode(Bench.token()) == "apple.key_unusable")
        }
        let twins = try Bench(
            document: document([try key.jwk(), try other.jwk(["kid": key.identifier]), try other.jwk()]))
        // Of two keys with one ID, each is tried.
        #expect(try await twins.failureCode(Bench.token()) == nil)
    }

    @Test func `explains each check up to the first that fails`() async throws {
        let bench = try Bench()
        let good = await bench.provider.explain(Credential(bearer: Array(try Bench.token().utf8)), in: Bench.context)
        #expect(
            good.map(\.check) == [
                "form", "algorithm", "header fields", "key", "key algorithm", "signature", "issuer", "audience",
                "expiry", "life",
                "age", "other times", "subject", "token kind", "claims",
            ])
        #expect(good.allSatisfy { $0.failure == nil })
        let bad = await bench.provider.explain(
            Credential(bearer: Array(try Bench.token { $0.claims["aud"] = "\"com.other\\u001b[2J\"" }.utf8)),
            in: Bench.context)
        #expect(bad.last?.check == "audience")
        #expect(bad.last?.failure == "apple.bad_audience")
        #expect(bad.last?.detail == "aud is com.other?[2J, not com.example.app or com.example.web")
        #expect(bad.dropLast().allSatisfy { $0.failure == nil })
        // Of a login, too: there the token must be younger, and may have a nonce.
        let login = AuthenticationContext(
            now: UnixTime(seconds: Bench.now), deadline: .never, purpose: .login)
        func checks(_ change: (inout Token) -> Void) async throws -> [CheckOutcome] {
            await bench.provider.explain(Credential(bearer: Array(try Bench.token(change).utf8)), in: login)
        }
        let old = try await checks { $0.claims["iat"] = JSONText(Int(Bench.now) - 700) }
        #expect(old.last?.failure == "apple.too_old")
        let bound = try await checks { $0.claims["nonce"] = "\"n\"" }
        #expect(bound.last?.check == "nonce" && bound.last?.failure == nil)
    }
}
