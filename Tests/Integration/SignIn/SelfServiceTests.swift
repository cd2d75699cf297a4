import Foundation
import MartletCore
import MartletCrypto
import MartletTesting
import Testing

/// A gateway where people register, its mail server or webhook receiver, and its configuration.
private struct SelfServiceStage {
    let stage: SignInStage
    let server: MailServer

    /// The token in the last mail to an address.
    func token(in template: String, to address: String = "ada@example.com", after count: Int = 0) throws -> String {
        try waitUntil("a mail arrives") { mails(to: address).count > count }
        let text = try #require(mails(to: address).last).text
        let match = try #require(
            try Regex(#"https://app\.example\.com/\#(template)\?t=(mlt_[A-Za-z0-9_-]{43})\r\n"#).firstMatch(in: text))
        return String(try #require(match.output[1].substring))
    }

    func mails(to address: String) -> [MailServer.Mail] { server.mails.filter { $0.recipients == ["<\(address)>"] } }

    func register(_ address: String) throws -> HTTPMessage {
        try stage.post("/auth/register", ["email": address, "password": "strangers horse", "name": "Ada"])
    }

    func verify(_ token: String, _ password: String = "correct horse") throws -> HTTPMessage {
        try stage.post("/auth/register/verify", ["token": token, "password": password])
    }
}

private let selfService = """
    register: { enabled: true, require: [name], link: "https://app.example.com/verify?t={token}" }
    reset: { link: "https://app.example.com/reset?t={token}" }
    deny_file: denied
    """

/// Runs a test with a gateway that sends mails, on SQLite or on PostgreSQL.
private func withSelfService(
    _ database: String, password: String = selfService, more: String? = nil, _ body: (SelfServiceStage) throws -> Void
) throws {
    let server = try MailServer(login: ("me", "secret"))
    let postgreSQL = database == "postgresql" ? try PostgreSQLServer() : nil
    let url = try postgreSQL.map { $0.url(database: try $0.makeDatabase()) } ?? "sqlite:accounts.db"
    let mail =
        more
        ?? "mail: { smtp: \"smtp://me@127.0.0.1:\(server.port)\", password: secret, from: Example <auth@example.com> }"
    let fixture = try AppleFixture()
    let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
    let lines = password.split(separator: "\n").map { "  \($0)\n" }.joined()
    var config = GatewayConfig(
        endpoints: [upstream.url],
        providers: fixture.provider() + "password:\n  kind: password\n  hash: { memory: 7168KiB, iterations: 5 }\n"
            + lines,
        routes: "- { name: all, match: { path: /** }, auth: { providers: [apple, password] }, upstream: api }")
    config.more = "accounts: { url: \"\(url)\" }\n\(mail)\n"
    let text = config.text
    let digest = SHA1.digest(Array("breached horse".utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
    let gateway = try Gateway(text, files: ["denied": "\(digest.joined()):12\n"])
    do {
        try body(
            SelfServiceStage(
                stage: try SignInStage(gateway, upstream, fixture, configuration: text) { try Gateway(text) },
                server: server))
        #expect(!gateway.everything.contains("mlt_") && !gateway.everything.contains("ada@example.com"))
    } catch {
        throw TestFailure("\(error)\n--- the gateway wrote:\n\(gateway.everything.suffix(6000))")
    }
    try gateway.stop()
    try postgreSQL?.stop()
}

@Suite(.timeLimit(.minutes(3))) struct SelfServiceTests {
    @Test(arguments: ["sqlite", "postgresql"])
    func `a user registers, confirms the address, forgets the password and chooses another`(database: String) throws {
        try withSelfService(database) { service in
            let stage = service.stage
            #expect(try service.register("Ada@Example.com").status == 202)
            let token = try service.token(in: "verify")
            #expect(
                try stage.post("/auth/login/password", ["username": "ada@example.com", "password": "correct horse"])
                    .status == 401)
            #expect(try service.verify(token).status == 204)
            #expect(try service.verify(token).status == 401)
            // The password of the registration may be a stranger's.
            #expect(
                try stage.post("/auth/login/password", ["username": "ada@example.com", "password": "strangers horse"])
                    .status == 401)
            let first = try stage.passwordLogin("ADA@example.com", "correct horse")
            let session = try stage.send("GET", "/auth/session", bearer: first.access)
            let claims = try #require(session.object["claims"] as? [String: Any])
            #expect(claims["name"] as? String == "Ada" && claims["email"] as? String == "ada@example.com")
            #expect(claims["email_verified"] as? Bool == true)

            // Known and unknown addresses look the same; only the known one gets a mail.
            let known = try stage.post("/auth/password/forgot", ["email": "ada@example.com"])
            let unknown = try stage.post("/auth/password/forgot", ["email": "bob@example.com"])
            #expect(known.status == 202 && unknown.status == 202 && known.body == unknown.body)
            let reset = try service.token(in: "reset", after: 1)
            let breached = try stage.post("/auth/password/reset", ["token": reset, "new_password": "breached horse"])
            #expect(breached.status == 400)
            let error = (breached.object["errors"] as? [[String: Any]])?.first
            #expect(error?["pointer"] as? String == "/new_password" && error?["code"] as? String == "breached")
            #expect(try stage.status(with: first.access) == 200)
            #expect(
                try stage.post("/auth/password/reset", ["token": reset, "new_password": "battery staple"]).status == 204
            )
            #expect(try stage.status(with: first.access) == 401)
            #expect(
                try stage.post("/auth/login/password", ["username": "ada@example.com", "password": "correct horse"])
                    .status == 401)
            let second = try stage.passwordLogin("ada@example.com", "battery staple")
            #expect(second.subject == first.subject && second.isNew == false)

            // What this network has asked for within a minute is not asked for again, and looks the same.
            #expect(try service.register("ada@example.com").status == 202)
            try waitUntil("it is in the log") { stage.gateway.log.contains { $0["event"] == "mail withheld" } }
            #expect(service.mails(to: "ada@example.com").count == 2)
            #expect(service.mails(to: "bob@example.com").isEmpty)
        }
    }

    @Test(arguments: ["sqlite", "postgresql"])
    func `whoever takes an address first leaves it to its owner`(database: String) throws {
        let rules =
            "register: { enabled: true, verify: none }\nreset: { link: \"https://app.example.com/reset?t={token}\" }"
        try withSelfService(database, password: rules) { service in
            let stage = service.stage
            #expect(
                try stage.post("/auth/register", ["email": "ada@example.com", "password": "strangers horse"]).status
                    == 204)
            let stranger = try stage.passwordLogin("ada@example.com", "strangers horse")
            let linked = try stage.post(
                "/auth/link/apple", bearer: stranger.access, ["identity_token": try stage.apple.token()])
            #expect(linked.status == 204)
            #expect(try stage.post("/auth/password/forgot", ["email": "ada@example.com"]).status == 202)
            let token = try service.token(in: "reset")
            #expect(
                service.mails(to: "ada@example.com")[0].text.contains("This email address was never confirmed before"))
            let reset = try stage.post("/auth/password/reset", ["token": token, "new_password": "owners horse"])
            #expect(reset.status == 204)
            #expect(try stage.status(with: stranger.access) == 401)
            let owner = try stage.passwordLogin("ada@example.com", "owners horse")
            let identities = try stage.send("GET", "/auth/identities", bearer: owner.access)
            #expect(!identities.text.contains("apple"))
            try waitUntil("the notice arrives") { service.mails(to: "ada@example.com").count == 2 }
            #expect(service.mails(to: "ada@example.com")[1].text.contains("* apple"))
        }
    }

    @Test func `a mail that the server does not take is sent later, or given up`() throws {
        try withSelfService("sqlite") { service in
            try service.server.behave(.init(responses: ["RCPT": "450 busy"]))
            #expect(try service.register("ada@example.com").status == 202)
            try waitUntil("an attempt is made") { service.server.verbs.contains("RCPT") }
            #expect(service.server.mails.isEmpty)
            try service.server.behave(.init())
            #expect(try service.token(in: "verify").hasPrefix("mlt_"))
            try service.server.behave(.init(responses: ["RCPT": "550 no such user"]))
            #expect(try service.register("eve@example.com").status == 202)
            try waitUntil("it is given up") {
                service.stage.gateway.log.contains { $0["event"] == "webhook delivery given up" }
            }
            let config = service.stage.gateway.folder.file("config.yaml")
            let listed = try run(
                try Executable.martlet(), ["events", "list", "--state", "dead", "--config", config])
            #expect(listed.output.contains("smtp.rejected") && !listed.output.contains("mlt_"), "\(listed)")
        }
    }

    @Test func `a webhook gets mails instead of a mail server`() throws {
        let receiver = try ScriptedUpstream { try $0.respond(204) }
        let secret = "whsec_" + Base64.encode([UInt8](repeating: 7, count: 32), padding: .required)
        func hook(_ events: String) -> String {
            "{ name: backend, url: \"\(receiver.url)/\(events.prefix(4))\", secret: \"\(secret)\", events: [\"\(events)\"] }"
        }
        let hooks =
            "webhooks: [\(hook("mail.*")), \(hook("*").replacing("backend", with: "all").replacing("/*", with: "/all"))]"
        try withSelfService("sqlite", more: hooks) { service in
            #expect(try service.register("ada@example.com").status == 202)
            try waitUntil("the event arrives") { receiver.requests.contains { !$0.body.isEmpty } }
            let request = try receiver.onlyRequest()
            #expect(request.target == "/mail" && request.member("type") == "dev.martlet.mail.requested")
            let data = try #require(request.object["data"] as? [String: Any])
            #expect(data["address"] as? String == "ada@example.com" && data["template"] as? String == "register")
            let token = try #require(data["token"] as? String)
            #expect(data["link"] as? String == "https://app.example.com/verify?t=\(token)")
            let life = try #require(data["expires_at"] as? Double) - Date().timeIntervalSince1970
            #expect((1700...1800).contains(life))
            #expect(try service.verify(token).status == 204)
            _ = try service.stage.passwordLogin("ada@example.com", "correct horse")
        }
    }

    @Test(arguments: ["register: { enabled: true }", "reset: true"])
    func `mails that nothing sends are an error of the configuration`(line: String) throws {
        let folder = try TemporaryFolder()
        let webhook =
            "webhooks: [{ name: all, url: \"http://127.0.0.1:1/\", events: [\"*\"], secret: "
            + Base64.encode([UInt8](repeating: 7, count: 32), padding: .required) + " }]\n"
        for more in ["", webhook] {
            let config =
                "version: 1\naccounts: { url: \"sqlite:a.db\" }\nproviders:\n  password:\n    kind: password\n    \(line)\nupstreams: { api: { endpoints: [\"builtin:echo\"] } }\nroutes: [{ name: all, match: { path: /** }, upstream: api }]\n\(more)"
            let path = try folder.write(config, to: "config.yaml")
            let result = try run(try Executable.martlet(), ["check", "--config", path])
            #expect(result.ending == .exited(78))
            #expect("\(result)".contains("config.yaml:6:") && "\(result)".contains("mail.*"), "\(result)")
        }
    }

    @Test func `an operator has the user prove the address, or vouches for it`() throws {
        try withSelfService("sqlite") { service in
            let config = service.stage.gateway.folder.file("config.yaml")
            let martlet = try Executable.martlet()
            let invited = try run(martlet, ["user", "add", "ada@example.com", "--config", config])
            #expect(invited.ending == .exited(0) && "\(invited)".contains("a mail to 'ada@example.com'"), "\(invited)")
            #expect(try service.verify(try service.token(in: "verify")).status == 204)
            _ = try service.stage.passwordLogin("ada@example.com", "correct horse")
            let vouched = try run(
                martlet, ["user", "add", "bob@example.com", "--verified", "--config", config], input: "correct horse\n")
            #expect(vouched.ending == .exited(0), "\(vouched)")
            _ = try service.stage.passwordLogin("bob@example.com", "correct horse")
            let shown = try run(martlet, ["user", "show", "bob@example.com", "--json", "--config", config])
            #expect(shown.output.contains("\"verified\":true"), "\(shown)")
            #expect(service.mails(to: "bob@example.com").isEmpty)
        }
    }

    @Test func `the command line refuses breached passwords`() throws {
        try withSelfService("sqlite") { service in
            let config = service.stage.gateway.folder.file("config.yaml")
            let martlet = try Executable.martlet()
            let bad = try run(martlet, ["user", "add", "bob", "--config", config], input: "breached horse\n")
            #expect(bad.ending == .exited(64) && "\(bad)".contains("password.breached"), "\(bad)")
            let good = try run(martlet, ["user", "add", "bob", "--config", config], input: "correct horse\n")
            #expect(good.ending == .exited(0))
            let change = try run(martlet, ["user", "passwd", "bob", "--config", config], input: "breached horse\n")
            #expect(change.ending == .exited(64) && "\(change)".contains("password.breached"))
        }
    }
}
