import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import OIDCProvider
import Testing

@Suite struct LoginTests {
    static func yaml(_ more: String = "") -> String {
        "issuer: https://issuer.example\naudiences: [api]\nlogin: { client_ids: [app]\(more) }"
    }

    static func login(
        _ bench: Bench, nonce: String? = nil, approval: AuthenticationError? = nil,
        _ change: (inout Token) -> Void = { _ in }
    ) async throws -> ErrorCode? {
        var context = bench.context
        if let approval { context.approval = { (_) async throws(AuthenticationError) in throw approval } }
        let token = try Bench.token { token in
            token.claims["aud"] = "\"app\""
            change(&token)
        }
        var texts = ["id_token": Secret(token)]
        texts["nonce"] = nonce.map { Secret($0) }
        do throws(AuthenticationError) {
            let signIn = try await bench.provider.signIn(
                with: SignInForm(texts: texts, others: [:], isForm: false), in: context)
            #expect(signIn.identity.providerSubject == "user-1")
        } catch { return error.code }
        return nil
    }

    @Test func `an ID token of a configured client logs in`() async throws {
        let bench = try Bench(Self.yaml())
        #expect(try await Self.login(bench) == nil)
        #expect(try await Self.login(bench) { $0.claims["aud"] = "\"api\"" } == "oidc.bad_audience")
        #expect(try await Self.login(bench) { $0.header["typ"] = "\"at+jwt\"" } == "oidc.header_not_allowed")
        #expect(try await Self.login(bench) { $0.claims["iat"] = JSONText(Int(Bench.now) - 601) } == "oidc.too_old")
        #expect(try await Self.login(bench) { $0.claims["azp"] = "\"other\"" } == "oidc.bad_authorized_party")
        #expect(try await Self.login(bench) { $0.claims["cnf"] = "{}" } == "oidc.bound_token")
        // It is no bearer token.
        #expect(try await bench.failureCode(Bench.token { $0.claims["aud"] = "\"app\"" }) == "oidc.bad_audience")
    }

    @Test func `body and token must agree on the nonce`() async throws {
        let bench = try Bench(Self.yaml())
        #expect(try await Self.login(bench, nonce: "n1") { $0.claims["nonce"] = "\"n1\"" } == nil)
        #expect(try await Self.login(bench, nonce: "n1") { $0.claims["nonce"] = "\"n2\"" } == "oidc.nonce_mismatch")
        #expect(try await Self.login(bench, nonce: "n1") == "oidc.nonce_missing")
        #expect(try await Self.login(bench) { $0.claims["nonce"] = "\"n1\"" } == "oidc.nonce_missing")
        // One of the gateway's form that it did not issue.
        #expect(try await Self.login(bench, nonce: "mno_x") { $0.claims["nonce"] = "\"mno_x\"" } == "oidc.nonce_reused")
        let strict = try Bench(Self.yaml(", nonce: required"))
        #expect(try await Self.login(strict) == "oidc.nonce_missing")
        #expect(try await Self.login(strict, nonce: "n1") { $0.claims["nonce"] = "\"n1\"" } == "oidc.nonce_reused")
        let off = try Bench(Self.yaml(", nonce: off"))
        #expect(try await Self.login(off) { $0.claims["nonce"] = "\"n1\"" } == nil)
    }

    @Test func `one that the gateway does not approve uses no nonce up`() async throws {
        let strict = try Bench(Self.yaml(", nonce: required"))
        let taken = AuthenticationError.denied("test.taken")
        // The nonce was not issued here, which only a lookup shows.
        let code = try await Self.login(strict, nonce: "n1", approval: taken) { $0.claims["nonce"] = "\"n1\"" }
        #expect(code == "test.taken")
        #expect(try await Self.login(strict, approval: taken) == "oidc.nonce_missing")
    }

    @Test func `without the block there are no logins`() async throws {
        #expect(try await Self.login(Bench()) == "oidc.login_not_configured")
    }
}
