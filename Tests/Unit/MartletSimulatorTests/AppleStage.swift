import MartletCore
import MartletJOSE
import MartletJSON
import MartletResponder
import MartletSimulator
import MartletTesting
import Testing

/// The simulated Apple with a developer's key and a manual clock.
struct AppleStage {
    static let app = "com.example.app"
    static let subject = "001234.0123456789abcdef0123456789abcdef.0001"
    static let form = "application/x-www-form-urlencoded"

    let simulator: AppleSimulator
    let endpoints: AppleSimulatorEndpoints
    let developer: DeveloperKeyPair
    private let seconds = Box<Int64>(1_700_000_000)

    /// Generated once: it takes a second.
    static let signing = Result { try AppleSigningKeys() }

    init(refreshesPerDay: Int? = nil) throws {
        let seconds = seconds
        let clock = Clock(
            unixTime: { UnixTime(seconds: seconds.value) },
            monotonicTime: { MonotonicTime(nanoseconds: seconds.value * 1_000_000_000) })
        simulator = try AppleSimulator(
            clock: clock, signing: try Self.signing.get(), refreshesPerDay: refreshesPerDay)
        endpoints = AppleSimulatorEndpoints(simulator)
        developer = try #require(simulator.developer)
    }

    var now: UnixTime { UnixTime(seconds: seconds.value) }

    func advance(_ span: Int64) { seconds.withLock { $0 += span } }

    // MARK: - Over "HTTP"

    /// A response, and its body if that is an object.
    struct Reply {
        let response: LocalResponse
        let object: JSONObject

        var status: Int { response.status }
        var error: String? { object["error"]?.string }
        var text: String { String(decoding: response.body, as: UTF8.self) }

        subscript(name: String) -> String? { object[name]?.string }
    }

    func send(
        _ method: String, _ target: String, _ body: String = "", fields: [(name: String, value: String)]
    ) async -> Reply {
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        let bytes = Array(body.utf8)
        let response = await endpoints.handle(
            LocalRequest(
                method: method, path: parts[0], query: parts.count > 1 ? parts[1] : "",
                fields: [("Host", "127.0.0.1:4000")] + fields, body: bytes, bodyBytes: bytes.count,
                client: "127.0.0.1", requestID: "r1"))
        return Reply(response: response, object: (try? Self.object(response.body)) ?? [:])
    }

    /// A request for a test's own endpoints, as JSON.
    func order(_ path: String, _ body: String) async -> Reply {
        await send("POST", path, body, fields: [("Content-Type", "application/json")])
    }

    /// A call of Apple's endpoints, as a form.
    func call(_ path: String, _ parameters: [(String, String)]) async -> Reply {
        await send(
            "POST", path, Self.encoded(parameters), fields: [("Content-Type", Self.form), ("User-Agent", "test")])
    }

    static func encoded(_ parameters: [(String, String)]) -> String {
        parameters.map { name, value in
            "\(name)=" + value.utf8.map { "%" + (($0 < 16 ? "0" : "") + String($0, radix: 16)) }.joined()
        }.joined(separator: "&")
    }

    static func object(_ body: [UInt8]) throws -> JSONObject {
        let limits = JSONLimits(maximumDepth: 8, maximumBytes: 1 << 22)
        return try #require(try JSON.parse(body, limits: limits).object)
    }

    // MARK: - Logins

    /// Logs in; the reply has `identity_token` and `authorization_code`.
    func logIn(_ more: String = "", subject: String = subject) async throws -> Reply {
        let reply = await order(
            "/simulator/token", #"{"audience": "\#(Self.app)", "subject": "\#(subject)", "code": true\#(more)}"#)
        #expect(reply.status == 200, "\(reply.text)")
        return reply
    }

    func code(_ more: String = "") async throws -> String {
        try #require(try await logIn(more)["authorization_code"])
    }

    func secret(_ clientID: String = app) throws -> String {
        try developer.clientSecret(clientID: clientID, at: now)
    }

    /// A call with the client's id and secret.
    func authorized(
        _ path: String, _ parameters: [(String, String)], client: String = app
    ) async throws -> Reply {
        await call(path, [("client_id", client), ("client_secret", try secret(client))] + parameters)
    }

    func exchange(_ code: String, _ more: [(String, String)] = [], client: String = app) async throws -> Reply {
        let parameters = [("grant_type", "authorization_code"), ("code", code)] + more
        return try await authorized("/auth/token", parameters, client: client)
    }

    func refresh(_ token: String, client: String = app) async throws -> Reply {
        try await authorized(
            "/auth/token", [("grant_type", "refresh_token"), ("refresh_token", token)], client: client)
    }

    /// A refresh token of a login.
    func refreshToken() async throws -> String {
        try #require(try await exchange(try await code())["refresh_token"])
    }

    func revoke(_ token: String, _ more: [(String, String)] = [], client: String = app) async throws -> Reply {
        try await authorized("/auth/revoke", [("token", token)] + more, client: client)
    }

    func claims(_ token: String?) throws -> JSONObject {
        let token = try CompactJWS(Array(try #require(token).utf8))
        let keys = try KeySet(document: simulator.keySetDocument, allowing: [.rs256])
        let key = try #require(keys.keys[try token.keyID()])
        #expect(key.verify(signature: token.signature, signingInput: token.signingInput))
        return token.payload
    }

    /// The log's entries.
    func log(after number: Int = 0) async -> [JSONObject] {
        let reply = await send("GET", "/simulator/requests?after=\(number)", fields: [])
        return (reply.object["requests"]?.array ?? []).compactMap(\.object)
    }
}
