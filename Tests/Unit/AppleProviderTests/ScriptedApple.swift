import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting

/// Apple's API as a test scripts it: each call gets the next response.
final class ScriptedApple: HTTPCalling {
    /// A call as Apple got it.
    struct Received: Sendable {
        let url: String
        let fields: [String: String]
        let headers: [String: String]
        let isRepeatable: Bool
    }

    private struct State {
        var responses: [Result<HTTPCallResponse, HTTPCallError>]
        var received: [Received] = []
    }

    private let state: Box<State>

    init(_ responses: [Result<HTTPCallResponse, HTTPCallError>]) { state = Box(State(responses: responses)) }

    convenience init(_ status: Int, _ body: String) {
        self.init([.success(HTTPCallResponse(status: status, body: Array(body.utf8)))])
    }

    var received: [Received] { state.value.received }

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        var fields: [(String, String)] = []
        if case .form(let pairs) = call.content { fields = pairs.map { ($0.name, $0.value) } }
        let received = Received(
            url: call.url, fields: Dictionary(fields) { $0 + " and " + $1 },
            headers: Dictionary(call.headers.map { ($0.name, $0.value) }) { first, _ in first },
            isRepeatable: call.isRepeatable)
        let response = state.withLock { state in
            state.received.append(received)
            return state.responses.isEmpty ? nil : state.responses.removeFirst()
        }
        guard let response else { throw HTTPCallError(code: "fetch.failed", message: "no response left") }
        return try response.get()
    }

    static let noResponse = Result<HTTPCallResponse, HTTPCallError>.failure(
        HTTPCallError(code: "fetch.timeout", message: "timeout"))

    /// The tokens for a code, with an identity token that is changed first.
    static func tokens(
        access: String = "access", refresh: String? = "refresh", _ change: (inout Token) -> Void = { _ in }
    ) throws -> String {
        let identity = try Bench.token { token in
            token.claims["at_hash"] = JSONText(string: halfHash(access))
            change(&token)
        }
        var body: JSONObject = [
            "access_token": .string(access), "token_type": "Bearer", "expires_in": 3600, "id_token": .string(identity),
        ]
        if let refresh { body["refresh_token"] = .string(refresh) }
        return String(decoding: JSON.write(body), as: UTF8.self)
    }

    /// The form of `c_hash` and `at_hash`.
    static func halfHash(_ text: String) -> String { base64URL(Array(SHA256.digest(Array(text.utf8)).prefix(16))) }
}

extension Bench {
    static let developerKey = Result { try SigningKey("KEY1234567", .p256) }

    /// The lines of a provider with a key.
    static func developerLines(_ more: [(String, Value)] = []) throws -> [(String, Value)] {
        [
            ("team_id", .text("ABCDE12345")), ("key_id", .text("KEY1234567")),
            ("private_key", .text(try developerKey.get().privatePEM())),
        ] + more
    }

    /// A provider with a key, whose API is scripted.
    static func withKey(
        _ apple: ScriptedApple, _ more: [(String, Value)] = [], logger: Logger = .silent
    ) throws -> Bench {
        try Bench(developerLines(more), http: apple, logger: logger)
    }

    /// A login with a code that matches the token.
    func login(
        code: String, _ change: (inout Token) -> Void = { _ in }
    ) async throws -> Result<
        SignIn, AuthenticationError
    > {
        try await login(Request(texts: ["authorization_code": code])) { token in
            token.claims["c_hash"] = JSONText(string: ScriptedApple.halfHash(code))
            change(&token)
        }
    }
}
