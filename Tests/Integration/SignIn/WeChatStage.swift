import Foundation
import MartletTesting

/// The demo's simulated WeChat, for gateways of a test's own.
final class WeChatStage: Sendable {
    static let mobile = "wx00000000000000a1"
    static let page = "wx00000000000000a2"
    static let mini = "wx00000000000000a3"
    static let secret = "planted-secret"

    let simulator: Endpoint
    let folder: TemporaryFolder
    private let demo: ChildProcess

    init() throws {
        folder = try TemporaryFolder()
        let demo = try ChildProcess(
            Executable.martlet(), ["demo", "--listen", "127.0.0.1:0"], output: folder, name: "demo")
        self.demo = demo
        try waitUntil("the demo is there", within: .seconds(30)) { demo.output.contains("/simulator/code") }
        let line = demo.output.split(separator: "\n").first { $0.contains("/simulator/calls") } ?? ""
        simulator = try Endpoint(text: String(line.split(separator: "/")[1]))
        for (id, variant) in [
            (Self.mobile, "mobile"), (Self.page, "official_account"), (Self.mini, "mini_program"),
        ] {
            _ = try order(
                "/simulator/app", ["app_id": "\"\(id)\"", "secret": "\"\(Self.secret)\"", "variant": "\"\(variant)\""])
        }
    }

    /// A client of a network of its own, for gateways that trust their peer: a /48 of IPv6.
    static func client(_ number: Int) -> (String, String) {
        ("X-Forwarded-For", "2001:db8:\(String(number & 0xFFFF, radix: 16))::1")
    }

    func stop() throws {
        demo.kill(15)
        _ = try demo.wait()
    }

    /// Sends an order, whose values are JSON.
    func order(_ path: String, _ members: [String: String]) throws -> HTTPMessage {
        let body = "{" + members.map { "\"\($0)\": \($1)" }.joined(separator: ", ") + "}"
        let response = try HTTPClient(to: simulator).exchange(
            "POST", path, [("Content-Type", "application/json")], body: Array(body.utf8))
        guard response.status == 200 else { throw TestFailure("\(path) \(body): \(response)") }
        return response
    }

    /// Signs a person in at WeChat.
    func code(_ app: String = mobile, _ members: [String: String] = [:]) throws -> String {
        try order("/simulator/code", members.merging(["app_id": "\"\(app)\""]) { $1 }).member("code") ?? ""
    }

    /// How often codes were exchanged so far, of all kinds.
    func exchanges() throws -> Int {
        let calls = try HTTPClient(to: simulator).exchange("GET", "/simulator/calls").object
        return (calls["/sns/oauth2/access_token"] as? Int ?? 0) + (calls["/sns/jscode2session"] as? Int ?? 0)
    }

    /// A gateway's configuration: all routes want a session or a credential.
    func configuration(
        _ provider: String = "", store: String = "memory:", more: String = "", server: String = ""
    ) -> String {
        var config = GatewayConfig(
            endpoints: ["builtin:echo"],
            providers: """
                wechat:
                  kind: wechat
                  base_url: http://\(simulator)
                  apps:
                    ios: { variant: mobile, app_id: \(Self.mobile), app_secret: \(Self.secret) }
                    page: { variant: official_account, app_id: \(Self.page), app_secret: \(Self.secret) }
                    mini: { variant: mini_program, app_id: \(Self.mini), app_secret: \(Self.secret) }
                \(provider.split(separator: "\n").map { "  \($0)" }.joined(separator: "\n"))
                """,
            server: server,
            routes: "- { name: api, match: { path: /** }, auth: { providers: [wechat] }, upstream: api }")
        config.more = "store: { url: \"\(store)\" }\n\(more)"
        return config.text
    }
}

extension Gateway {
    /// `POST /auth/login/wechat`.
    func signInWithWeChat(_ members: [String: String], _ fields: [(String, String)] = []) throws -> HTTPMessage {
        try postWeChat("/auth/login/wechat", members, fields)
    }

    /// The same post to any endpoint.
    func postWeChat(_ path: String, _ members: [String: String], _ fields: [(String, String)]) throws -> HTTPMessage {
        let body = try JSONSerialization.data(withJSONObject: members)
        return try exchange("POST", path, [("Content-Type", "application/json")] + fields, body: Array(body))
    }
}
