import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import MartletTesting

/// An issuer as a test scripts it: each URL has its response.
final class ScriptedIssuer: HTTPCalling, KeyFetching {
    /// A call as the issuer got it.
    struct Received: Sendable {
        let url: String
        let fields: [String: String]
        let headers: [String: String]
        let isRepeatable: Bool
        let maximumBytes: Int
    }

    private struct State {
        var responses: [String: Result<HTTPCallResponse, HTTPCallError>] = [:]
        var received: [Received] = []
        var keys: [String: [UInt8]] = [:]
        var fetched: [String] = []
        var forgotten = 0
    }

    static let discoveryURL = "https://issuer.example/.well-known/openid-configuration"
    static let keysURL = "https://issuer.example/keys"

    private let state: Box<State>

    /// - Parameter document: the members of the discovery document to replace, or to remove.
    init(_ changes: KeyValuePairs<String, JSONValue?> = [:]) throws {
        state = Box(State())
        try discover(changes)
        setKeys(try [Bench.key.get(), Bench.otherKey.get()] + Bench.curves.get())
    }

    /// The discovery document from now on.
    func discover(_ changes: KeyValuePairs<String, JSONValue?> = [:]) throws {
        var document: JSONObject = [
            "issuer": .string(Bench.issuer), "jwks_uri": .string(Self.keysURL),
            "authorization_endpoint": "https://issuer.example/authorize",
            "token_endpoint": "https://issuer.example/token", "userinfo_endpoint": "https://issuer.example/userinfo",
        ]
        for (name, value) in changes { document[name] = value }
        respond(at: Self.discoveryURL, 200, JSON.write(document))
    }

    /// The keys at a URL from now on.
    func setKeys(_ keys: [SigningKey], at url: String = keysURL) {
        let document = try? AppleFixture.document(keys)
        state.withLock { $0.keys[url] = document }
    }

    /// The key set at a URL from now on, as it stands.
    func setDocument(_ document: [UInt8], at url: String) { state.withLock { $0.keys[url] = document } }

    func respond(at url: String, _ status: Int, _ body: [UInt8], retryAfter: Duration? = nil) {
        let response = HTTPCallResponse(status: status, body: body, retryAfter: retryAfter)
        state.withLock { $0.responses[url] = .success(response) }
    }

    func respond(at url: String, _ status: Int, _ object: JSONObject) { respond(at: url, status, JSON.write(object)) }

    func respond(at url: String, _ object: JSONObject) { respond(at: url, 200, object) }

    func fail(at url: String) {
        state.withLock { $0.responses[url] = .failure(HTTPCallError(code: "fetch.timeout", message: "timeout")) }
    }

    var received: [Received] { state.value.received }
    var fetched: [String] { state.value.fetched }
    var forgotten: Int { state.value.forgotten }

    func received(at url: String) -> [Received] { received.filter { $0.url == url } }

    func forget() { state.withLock { $0.forgotten += 1 } }

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        var fields: [(String, String)] = []
        if case .form(let pairs) = call.content { fields = pairs.map { ($0.name, $0.value) } }
        let received = Received(
            url: call.url, fields: Dictionary(fields) { $0 + " and " + $1 },
            headers: Dictionary(call.headers.map { ($0.name, $0.value) }) { $0 + " and " + $1 },
            isRepeatable: call.isRepeatable, maximumBytes: call.maximumBytes)
        let response = state.withLock { state in
            state.received.append(received)
            return state.responses[call.url]
        }
        guard let response else { throw HTTPCallError(code: "fetch.failed", message: "nothing there") }
        let got = try response.get()
        guard got.body.count <= call.maximumBytes else {
            throw HTTPCallError(code: "fetch.too_large", message: "too large")
        }
        return got
    }

    func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8] {
        let document = state.withLock { state in
            state.fetched.append(url)
            return state.keys[url]
        }
        guard let document else { throw FetchError(code: "fetch.status", message: "503") }
        return document
    }

    /// The form of `at_hash`.
    static func halfHash(_ text: String) -> String { base64URL(Array(SHA256.digest(Array(text.utf8)).prefix(16))) }
}
