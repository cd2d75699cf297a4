import Foundation
import MartletTesting
import Testing

/// `PATCH /auth/profile`, as upstreams see it.
@Suite(.timeLimit(.minutes(3))) struct ProfileTests {
    private static let routes = """
        - name: all
          match: { path: /** }
          auth: { providers: [apple, password] }
          headers:
            set:
              X-Name: { claim: name, encode: percent, default: none }
              X-Locale: { claim: locale, default: none }
          upstream: api
        """

    @Test func `a new name reaches the upstreams of every instance within a second`() throws {
        let redis = try RedisServer()
        try withSignIn(
            server: "workers: 2", routes: Self.routes, more: "store: { url: \"\(redis.url)\" }"
        ) { stage in
            let second = try stage.startAnother()
            let tokens = try stage.passwordLogin()
            let basic = Data("alice:\(SignInStage.password)".utf8).base64EncodedString()
            let clients = try [stage.gateway, second].flatMap { gateway in
                try [bearer(tokens.access), [("Authorization", "Basic \(basic)")]].map {
                    (client: try gateway.connect(), fields: $0)
                }
            }
            /// What the upstream sees of a session and a password at both instances.
            func seen() throws -> [String] {
                try clients.map { client in
                    let response = try client.client.exchange("GET", "/who", client.fields)
                    let request = stage.upstream.requests.last
                    return "\(response.status) \(request?["X-Name"] ?? "") \(request?["X-Locale"] ?? "")"
                }
            }
            func patch(_ body: String) throws -> HTTPMessage {
                try stage.send(
                    "PATCH", "/auth/profile", bearer: tokens.access, [("Content-Type", "application/json")],
                    Array(body.utf8))
            }
            #expect(try seen() == Array(repeating: "200 none none", count: 4))
            let changed = try patch(#"{"name":"\u5f20\u4e09","locale":"zh-hans-cn"}"#)
            #expect(changed.status == 200 && changed.member("locale") == "zh-Hans-CN", "\(changed)")
            try waitUntil("it is seen", within: .seconds(1)) {
                try seen() == Array(repeating: "200 %E5%BC%A0%E4%B8%89 zh-Hans-CN", count: 4)
            }
            let refreshed = try Tokens(stage.post("/auth/refresh", ["refresh_token": tokens.refresh]))
            #expect(try second.get("/who", bearer(refreshed.access)).status == 200)
            #expect(stage.upstream.requests.last?["X-Locale"] == "zh-Hans-CN")

            let config = stage.gateway.folder.file("config.yaml")
            func martlet(_ words: [String]) throws -> CommandResult {
                try run(try Executable.martlet(), ["account"] + words + ["--config", config])
            }
            #expect(try martlet(["set", tokens.subject, "name=Alice"]).ending == .exited(0))
            try waitUntil("the operator's name is seen", within: .seconds(1)) {
                try seen() == Array(repeating: "200 Alice zh-Hans-CN", count: 4)
            }
            let shown = try martlet(["show", tokens.subject])
            #expect(
                shown.output.contains("claims\t" + #"{"name":"Alice","locale":"zh-Hans-CN"}"#)
                    && shown.output.contains("profile\t" + #"{"name":"张三","locale":"zh-Hans-CN"}"#), "\(shown)")
            #expect(try patch(#"{"locale":null}"#).status == 200)
            try waitUntil("it is gone", within: .seconds(1)) {
                try seen() == Array(repeating: "200 Alice none", count: 4)
            }
            try second.stop()
        }
    }

    @Test func `without a store nothing is changed`() throws {
        let redis = try RedisServer()
        try withSignIn(more: "store: { url: \"\(redis.url)\" }") { stage in
            let tokens = try stage.passwordLogin()
            try redis.stop()
            try waitUntil("the gateway notices") {
                try stage.send(
                    "PATCH", "/auth/profile", bearer: tokens.access, [("Content-Type", "application/json")],
                    Array(#"{"name":"Eve"}"#.utf8)
                ).status == 503
            }
            let shown = try run(
                try Executable.martlet(),
                ["account", "show", tokens.subject, "--config", stage.gateway.folder.file("config.yaml")])
            #expect(shown.ending == .exited(0) && !shown.output.contains("Eve"), "\(shown)")
        }
    }
}
