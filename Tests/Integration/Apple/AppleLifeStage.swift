import Foundation
import MartletCore
import MartletTesting

/// A simulated Apple that issues codes and refresh tokens, a receiver of webhooks, and gateways that use both.
final class AppleLifeStage {
    static let app = "com.example.app"
    private static let hookKey = [UInt8](repeating: 0x5A, count: 32)

    let apple: RunningSimulator
    let receiver: ScriptedUpstream
    let folder: TemporaryFolder
    private let endpoint: Endpoint
    /// The Redis server that gateways share; `nil` keeps sessions in memory.
    let redis: RedisServer?
    private var gateways: [Gateway] = []

    /// - Parameter script: what the receiver of webhooks does.
    init(
        hasRedis: Bool = false, _ script: @escaping ScriptedUpstream.Script = { try $0.respond(204) }
    ) throws {
        apple = try RunningSimulator(["apple"])
        endpoint = try Endpoint(text: String(apple.url.dropFirst("http://".count)))
        receiver = try ScriptedUpstream(script)
        folder = try TemporaryFolder()
        redis = hasRedis ? try RedisServer() : nil
        let key = try HTTPClient(to: endpoint).exchange("GET", "/simulator/private-key", [])
        try folder.write(key.text, to: "AuthKey.p8")
        try folder.write(
            Base64.encode([UInt8](repeating: 7, count: 32), padding: .required), to: "account.key")
    }

    /// - Parameters:
    ///   - provider: more keys of the provider.
    ///   - accounts: more keys of `accounts`.
    func configuration(
        provider: String = "", accounts: String = "", routes: String = GatewayConfig.closed
    ) -> String {
        var config = GatewayConfig(
            endpoints: ["builtin:echo"],
            providers: """
                apple:
                  kind: apple
                  audiences: [\(AppleLifeStage.app)]
                  base_url: "\(apple.url)"
                  team_id: SIMTEAM001
                  key_id: SIMKEY0001
                  private_key_file: AuthKey.p8
                  notifications: true
                  \(provider)
                """, routes: routes)
        let secret = "whsec_" + Base64.encode(AppleLifeStage.hookKey, padding: .required)
        config.more = """
            accounts: { url: "sqlite:accounts.db", key_file: account.key\(accounts.isEmpty ? "" : ", ")\(accounts) }
            webhooks:
              - { name: backend, url: "\(receiver.url)/hook", secret: "\(secret)", events: ["*"] }

            """
        if let redis { config.more += "store: { url: \"\(redis.url)\" }\n" }
        return config.text
    }

    func gateway(
        provider: String = "", accounts: String = "", routes: String = GatewayConfig.closed
    ) throws -> Gateway {
        let gateway = try Gateway(configuration(provider: provider, accounts: accounts, routes: routes), in: folder)
        gateways.append(gateway)
        return gateway
    }

    // MARK: Apple

    /// Sends the simulator an order.
    @discardableResult
    func order(_ path: String, _ members: [String: Any]) throws -> HTTPMessage {
        let body = Array(try JSONSerialization.data(withJSONObject: members))
        let response = try HTTPClient(to: endpoint).exchange(
            "POST", path, [("Content-Type", "application/json")], body: body)
        guard response.status == 200 else { throw TestFailure("\(path): \(response)") }
        return response
    }

    /// The digest of the code with which a gateway that starts asks whether Apple accepts its key.
    private static let madeUpCode = "02bf7520d87b0f9d701697ad8b1df0a8c2bd49d1bb6219ba8c7fcfd5ccfe18c8"

    /// What Apple got, by path: the digests of codes and tokens.
    func requests() throws -> [[String: Any]] {
        let response = try HTTPClient(to: endpoint).exchange("GET", "/simulator/requests", [])
        let document = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
        let requests = document?["requests"] as? [[String: Any]] ?? []
        return requests.filter { $0["code_sha256"] as? String != Self.madeUpCode }
    }

    static func subject(_ number: Int) -> String { "001234.0123456789abcdef0123456789abcdef.\(1000 + number)" }

    /// The body of a login with a fresh token and, by default, its code.
    func credential(_ number: Int, hasCode: Bool = true) throws -> [String: String] {
        let login = try order(
            "/simulator/token",
            ["audience": AppleLifeStage.app, "subject": AppleLifeStage.subject(number), "code": hasCode])
        guard let token = login.member("identity_token") else { throw TestFailure("no token: \(login)") }
        var body = ["identity_token": token]
        body["authorization_code"] = login.member("authorization_code")
        return body
    }

    /// A notification as Apple signs it.
    func notification(
        _ type: String, of number: Int, at milliseconds: Int64? = nil, id: String = UUID().uuidString,
        forged: Bool = false
    ) throws -> String {
        let time = milliseconds ?? Int64(Date().timeIntervalSince1970 * 1000)
        let events: [String: Any] = ["type": type, "sub": AppleLifeStage.subject(number), "event_time": time]
        let text = String(decoding: try JSONSerialization.data(withJSONObject: events), as: UTF8.self)
        let login = try order(
            "/simulator/token",
            [
                "audience": AppleLifeStage.app, "subject": AppleLifeStage.subject(number), "forged": forged,
                "claims": ["events": text, "jti": id],
            ])
        guard let token = login.member("identity_token") else { throw TestFailure("no token: \(login)") }
        return token
    }

    // MARK: Gateways

    /// Posts JSON to a gateway.
    @discardableResult
    static func post(
        _ path: String, _ members: [String: String], at gateway: Gateway, token: String? = nil
    ) throws -> HTTPMessage {
        let body = Array(try JSONSerialization.data(withJSONObject: members))
        var fields = [("Content-Type", "application/json")]
        if let token { fields.append(("Authorization", "Bearer \(token)")) }
        return try gateway.exchange("POST", path, fields, body: body)
    }

    /// Logs in and returns the response.
    func login(_ number: Int, at gateway: Gateway, hasCode: Bool = true) throws -> HTTPMessage {
        try Self.post("/auth/login/apple", try credential(number, hasCode: hasCode), at: gateway)
    }

    /// The access token of a login.
    /// - Throws: what the gateways wrote, where there is none.
    func token(of response: HTTPMessage) throws -> String {
        guard response.status == 200, let token = response.member("access_token") else {
            throw TestFailure("no login: \(response)\n\(gateways.map(\.everything).joined(separator: "\n"))")
        }
        return token
    }

    func notify(_ payload: String, at gateway: Gateway) throws -> HTTPMessage {
        try Self.post("/auth/apple/notifications", ["payload": payload], at: gateway)
    }

    /// The status of a request with an access token.
    static func status(_ token: String, at gateway: Gateway) throws -> Int {
        try gateway.get("/resource", [("Authorization", "Bearer \(token)")]).status
    }

    static func delete(_ token: String, at gateway: Gateway) throws -> HTTPMessage {
        try gateway.exchange("DELETE", "/auth/account", [("Authorization", "Bearer \(token)")], body: [])
    }

    /// The events that the receiver got, each once, in the order of their first arrival.
    var events: [Event] {
        var seen: Set<String> = []
        return receiver.requests.compactMap(Event.init).filter { seen.insert($0.id).inserted }
    }

    /// An event that a receiver got.
    struct Event {
        let id: String
        let type: String
        let subject: String
        let data: [String: Any]

        init?(_ request: HTTPMessage) {
            guard
                let document = try? JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any],
                let id = document["id"] as? String, let type = document["type"] as? String,
                let subject = document["subject"] as? String
            else { return nil }
            self.id = id
            self.type = String(type.dropFirst("dev.martlet.".count))
            self.subject = subject
            data = document["data"] as? [String: Any] ?? [:]
        }
    }

    /// Waits for an event of a subject.
    func event(_ type: String, of subject: String, within limit: Duration = .seconds(10)) throws -> Event {
        try waitUntil("the event \(type)", within: limit) {
            self.events.contains { $0.type == type && $0.subject == subject }
        }
        guard let event = events.first(where: { $0.type == type && $0.subject == subject }) else {
            throw TestFailure("no event")
        }
        return event
    }
}
