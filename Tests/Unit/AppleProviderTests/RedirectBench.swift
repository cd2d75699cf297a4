import AppleProvider
import MartletCore
import MartletProvider
import MartletTesting
import Testing

extension Bench {
    static let website = "com.example.web"
    static let callback = "https://app.example.com/auth/callback/apple"
    static let state = "0123456789abcdef0123456789abcdef"
    static let attemptNonce = "n-0S6_WzA2Mj0123456789"
    static let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    static let code = "c0ffee00c0ffee00c0ffee00c0ffee00.0.test.AAAAAAAAAAAAAAAAAAAAAA"

    static func attempt(nonce: String = attemptNonce) throws -> RedirectAttempt {
        try #require(
            RedirectAttempt(
                state: state, nonce: nonce, codeVerifier: Secret(verifier), redirectURI: callback, browser: .standard))
    }

    /// A provider with the block `web`.
    static func web(
        _ lines: [(String, Value)] = [], apple: ScriptedApple? = nil, key: Bool = true,
        store: any SharedStoring = MemoryStore(clock: clock), _ more: [(String, Value)] = []
    ) throws -> Bench {
        let web = ("web", Value.block([("client_id", .text(website))] + lines))
        return try Bench((key ? try developerLines(more) : more) + [web], store: store, http: apple)
    }

    /// A token that Apple issues for the attempt, changed first.
    static func webToken(_ change: (inout Token) -> Void = { _ in }) throws -> String {
        try token { token in
            token.claims["aud"] = JSONText(string: website)
            token.claims["nonce"] = JSONText(string: attemptNonce)
            token.claims["c_hash"] = JSONText(string: ScriptedApple.halfHash(code))
            change(&token)
        }
    }

    /// Apple's tokens for the code.
    static func webTokens(_ change: (inout Token) -> Void = { _ in }) throws -> ScriptedApple {
        ScriptedApple(
            200,
            try ScriptedApple.tokens { token in
                token.claims["aud"] = JSONText(string: website)
                token.claims["nonce"] = JSONText(string: attemptNonce)
                change(&token)
            })
    }

    /// What the browser brings back, with fields replaced, or removed.
    func complete(
        _ changes: [String: String?] = [:], attempt: RedirectAttempt? = nil,
        _ change: (inout Token) -> Void = { _ in }
    ) async throws -> Result<RedirectOutcome, AuthenticationError> {
        var fields: [String: String?] = ["state": Self.state, "code": Self.code, "id_token": try Self.webToken(change)]
        fields.merge(changes) { $1 }
        let attempt = if let attempt { attempt } else { try Self.attempt() }
        let encoded = fields.compactMap { name, value in value.map { "\(name)=\(Self.encoded($0))" } }
        let flow = try #require(provider.redirectFlow(in: .standard))
        do throws(AuthenticationError) {
            let sent = try CallbackFields(
                encoded: Array(encoded.joined(separator: "&").utf8), sentBy: flow.responseMode)
            let callback = try RedirectCallback(sent, of: attempt, in: flow)
            return .success(try await provider.complete(callback, in: Self.context))
        } catch {
            return .failure(error)
        }
    }

    private static func encoded(_ text: String) -> String {
        text.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

extension Result where Success == RedirectOutcome, Failure == AuthenticationError {
    /// The error code, or `nil`.
    var code: ErrorCode? { if case .failure(let error) = self { error.code } else { nil } }
    var disposition: AuthenticationError.Disposition? {
        if case .failure(let error) = self { error.disposition } else { nil }
    }
    var signIn: SignIn? { if case .success(.signedIn(let signIn)) = self { signIn } else { nil } }
    var isCancelled: Bool { if case .success(.cancelled) = self { true } else { false } }
}
