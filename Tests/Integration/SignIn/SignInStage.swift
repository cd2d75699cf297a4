import Foundation
import MartletJSON
import MartletTesting
import Testing

/// A gateway where people sign in, with a simulated Apple, password users and one scripted upstream.
///
/// Every response to ``send(_:_:bearer:_:_:)`` is checked against the description that the gateway serves.
final class SignInStage {
    static let password = "correct horse battery"

    let gateway: Gateway
    let upstream: ScriptedUpstream
    let apple: AppleFixture
    private let description: APIDescription
    /// Starts another instance with the same configuration, accounts included.
    let startAnother: () throws -> Gateway
    let configuration: String

    init(
        _ gateway: Gateway, _ upstream: ScriptedUpstream, _ apple: AppleFixture, configuration: String,
        startAnother: @escaping () throws -> Gateway
    ) throws {
        self.startAnother = startAnother
        self.configuration = configuration
        (self.gateway, self.upstream, self.apple) = (gateway, upstream, apple)
        let served = try gateway.get("/auth/openapi.json")
        let limits = JSONLimits(maximumDepth: 32, maximumBytes: 1 << 20)
        description = APIDescription(try #require(try JSON.parse(served.body, limits: limits).object))
    }

    /// One request on a connection of its own.
    @discardableResult
    func send(
        _ method: String, _ target: String, bearer token: String? = nil, _ fields: [(String, String)] = [],
        _ body: [UInt8]? = nil, at location: SourceLocation = #_sourceLocation
    ) throws -> HTTPMessage {
        let more = token.map { [("Authorization", "Bearer \($0)")] } ?? []
        let response = try gateway.exchange(method, target, fields + more, body: body)
        check(method, target, response, at: location)
        return response
    }

    /// Posts JSON, of the members given.
    @discardableResult
    func post(
        _ target: String, bearer token: String? = nil, _ members: [String: Any] = [:],
        at location: SourceLocation = #_sourceLocation
    ) throws -> HTTPMessage {
        let body = Array(try JSONSerialization.data(withJSONObject: members))
        return try send("POST", target, bearer: token, [("Content-Type", "application/json")], body, at: location)
    }

    /// Posts a form.
    @discardableResult
    func post(
        _ target: String, bearer token: String? = nil, form: String, at location: SourceLocation = #_sourceLocation
    ) throws -> HTTPMessage {
        let type = [("Content-Type", "application/x-www-form-urlencoded")]
        return try send("POST", target, bearer: token, type, Array(form.utf8), at: location)
    }

    /// Checks a response against the description.
    func check(_ method: String, _ target: String, _ response: HTTPMessage, at location: SourceLocation) {
        let path = target.split(separator: "?").first.map(String.init) ?? target
        let fields = response.fields.map { (name: $0.name, value: $0.value) }
        let body = method == "HEAD" ? nil : response.body
        for finding in description.findings(method, path, .init(status: response.status, fields: fields, body: body)) {
            Issue.record("\(finding): \(response)", sourceLocation: location)
        }
    }

    /// A session of a password user.
    ///
    /// On a loaded machine the store may not respond in time: the gateway asks to try again after a second then.
    func passwordLogin(_ name: String = "alice", _ password: String = SignInStage.password) throws -> Tokens {
        for _ in 0..<4 {
            let response = try post("/auth/login/password", ["username": name, "password": password])
            guard response.status == 503 else { return try Tokens(response) }
            pause(.seconds(1))
        }
        return try Tokens(post("/auth/login/password", ["username": name, "password": password]))
    }

    /// A session of an Apple user.
    func appleLogin(_ subject: String = "001234.0123456789abcdef0123456789abcdef.0001") throws -> Tokens {
        try Tokens(post("/auth/login/apple", ["identity_token": try apple.token(subject: subject)]))
    }

    /// What the upstream receives about the owner of a token; `nil` if the request does not reach it.
    func subject(seenWith token: String) throws -> String? {
        let before = upstream.requests.count
        let response = try gateway.get("/who", bearer(token))
        guard response.status == 200 else { return nil }
        return upstream.requests.dropFirst(before).last?["X-Auth-Subject"]
    }

    /// The status of a request with a token.
    func status(with token: String) throws -> Int { try gateway.get("/who", bearer(token)).status }
}

/// A pair of tokens as a client has it.
struct Tokens: Sendable, Equatable {
    let access: String
    let refresh: String
    let session: String
    let subject: String
    let isNew: Bool?

    /// - Throws: if the response is no pair of tokens.
    init(_ response: HTTPMessage) throws {
        guard response.status == 200, let access = response.member("access_token"),
            let refresh = response.member("refresh_token"), let session = response.member("session_id"),
            let subject = response.member("subject")
        else { throw TestFailure("no tokens: \(response)") }
        self.access = access
        self.refresh = refresh
        self.session = session
        self.subject = subject
        isNew = response.object["new_account"] as? Bool
    }
}

/// Runs a test against a gateway where people sign in.
/// - Parameters:
///   - users: password users who are there already; all with ``SignInStage/password``.
///   - accounts: the `accounts` block, empty for none.
///   - routes: instead of one that takes everything.
///   - script: of the upstream.
///   - more: more top-level blocks.
func withSignIn(
    users: [String] = ["alice"], accounts: String = "accounts: { url: \"sqlite:accounts.db\" }", apple: String = "",
    password: String = "", server: String = "", routes: String? = nil, more: String = "",
    script: @escaping ScriptedUpstream.Script = { try $0.respond(200, body: "ok") },
    _ body: (SignInStage) throws -> Void
) throws {
    let fixture = try AppleFixture()
    let upstream = try ScriptedUpstream(script)
    let kind = "password:\n  kind: password\n  hash: { memory: 7168KiB, iterations: 5 }\n"
    let lines = password.split(separator: "\n").map { "  \($0)\n" }.joined()
    var config = GatewayConfig(
        endpoints: [upstream.url], providers: fixture.provider(apple) + (accounts.isEmpty ? "" : kind + lines),
        server: server,
        routes: routes
            ?? "- { name: all, match: { path: /** }, auth: { providers: [apple\(accounts.isEmpty ? "" : ", password")] }, upstream: api }"
    )
    config.more = "\(accounts)\n\(more)"
    let folder = try TemporaryFolder()
    let path = try folder.write(config.text, to: "config.yaml")
    for user in accounts.isEmpty ? [] : users {
        let result = try run(
            try Executable.martlet(), ["user", "add", user, "--config", path], input: "\(SignInStage.password)\n")
        guard result.ending == .exited(0) else { throw TestFailure("no user: \(result)") }
    }
    let gateway = try Gateway(config.text, in: folder)
    do {
        let text = config.text
        try body(
            try SignInStage(gateway, upstream, fixture, configuration: text) { try Gateway(text, in: folder) })
    } catch {
        throw TestFailure("\(error)\n--- the gateway wrote:\n\(gateway.everything.suffix(6000))")
    }
    try gateway.stop()
}
