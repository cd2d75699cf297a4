import Foundation
import MartletTesting
import Testing

/// A command at the admin listener of a gateway.
private func martlet(_ arguments: [String], at gateway: Gateway) throws -> CommandResult {
    try run(try Executable.martlet(), arguments + ["--admin", "\(gateway.operators)"])
}

/// A request to the admin listener of a gateway.
private func ask(_ method: String, _ target: String, at gateway: Gateway) throws -> HTTPMessage {
    try HTTPClient(to: gateway.operators).exchange(method, target, body: method == "POST" ? [] : nil)
}

/// The ids that `GET /sessions` lists, the newest first.
private func listed(_ subject: String, at gateway: Gateway) throws -> [String] {
    let response = try gateway.askAdmin("/sessions?subject=\(subject)")
    let list = try JSONSerialization.jsonObject(with: Data(response.body)) as? [[String: Any]]
    guard response.status == 200, let list else { throw TestFailure("\(response)") }
    return list.compactMap { $0["session_id"] as? String }
}

/// Two gateways that share Redis and accounts.
private func withPair(_ server: String = "", _ body: (SignInStage, Gateway, RedisServer) throws -> Void) throws {
    let redis = try RedisServer()
    try withSignIn(server: server, more: "store: { url: \"\(redis.url)\" }") { stage in
        let second = try stage.startAnother()
        try body(stage, second, redis)
        try second.stop()
    }
}

@Suite(.timeLimit(.minutes(3))) struct SubjectSessionTests {
    @Test func `sessions are listed, and end everywhere within a second: one, one of a subject, all`() throws {
        try withPair("workers: 2") { stage, second, _ in
            let tokens = try (0..<4).map { _ in try stage.appleLogin() }
            let subject = tokens[0].subject
            let clients = try (0..<4).map { _ in try second.connect() }
            func statuses() throws -> [Int] {
                try (0..<4).map { try clients[$0].exchange("GET", "/who", bearer(tokens[$0].access)).status }
            }
            #expect(try statuses() == [200, 200, 200, 200])
            #expect(try listed(subject, at: stage.gateway) == tokens.reversed().map(\.session))
            #expect(try listed(subject, at: second) == tokens.reversed().map(\.session))
            #expect(try listed("usr_nobody", at: stage.gateway).isEmpty)
            expectRejection(try stage.gateway.askAdmin("/sessions"), 400, "request_invalid")

            // By its id alone: the store is searched.
            #expect(try ask("DELETE", "/sessions/\(tokens[1].session)", at: stage.gateway).status == 204)
            try waitUntil("it is out", within: .seconds(1)) { try statuses() == [200, 401, 200, 200] }
            expectRejection(try ask("DELETE", "/sessions/\(tokens[1].session)", at: second), 404, "not_found")
            let named = "/sessions/\(tokens[2].session)?subject="
            expectRejection(try ask("DELETE", named + "usr_other", at: stage.gateway), 404, "not_found")
            #expect(try ask("DELETE", named + subject, at: stage.gateway).status == 204)
            try waitUntil("it is out", within: .seconds(1)) { try statuses() == [200, 401, 401, 200] }
            #expect(try listed(subject, at: stage.gateway) == [tokens[3].session, tokens[0].session])

            #expect(try ask("DELETE", "/subjects/\(subject)/sessions", at: stage.gateway).status == 204)
            try waitUntil("all are out", within: .seconds(1)) { try statuses() == [401, 401, 401, 401] }
            // The account is known, so it is no error to end nothing.
            #expect(try ask("DELETE", "/subjects/\(subject)/sessions", at: stage.gateway).status == 204)
            expectRejection(try ask("DELETE", "/subjects/usr_nobody/sessions", at: stage.gateway), 404, "not_found")
            #expect(try stage.status(with: stage.appleLogin().access) == 200)
        }
    }

    @Test func `without Redis nothing is said to have ended`() throws {
        try withPair { stage, _, redis in
            let tokens = try stage.appleLogin()
            try redis.stop()
            try waitUntil("the gateway notices") {
                try ask("DELETE", "/subjects/\(tokens.subject)/disable", at: stage.gateway).status == 405
                    && stage.gateway.askAdmin("/sessions?subject=x").status == 503
            }
            expectRejection(try ask("GET", "/sessions/x", at: stage.gateway), 405, "method_not_allowed")
            for (method, target) in [
                ("GET", "/sessions?subject=\(tokens.subject)"), ("DELETE", "/sessions/\(tokens.session)"),
                ("DELETE", "/sessions/\(tokens.session)?subject=\(tokens.subject)"),
                ("DELETE", "/subjects/\(tokens.subject)/sessions"), ("POST", "/subjects/\(tokens.subject)/disable"),
                ("DELETE", "/subjects/\(tokens.subject)"),
            ] {
                expectRejection(try ask(method, target, at: stage.gateway), 503, "auth_unavailable", target)
            }
            let shown = try stage.gateway.askAdmin("/subjects/\(tokens.subject)").object
            #expect(shown["state"] as? String == "active" && shown["sessions"] is NSNull)
            let command = try martlet(["account", "disable", tokens.subject], at: stage.gateway)
            #expect(command.ending == .exited(69) && command.errorOutput.contains("nothing was changed"), "\(command)")
        }
    }

    @Test func `sessions in memory without accounts`() throws {
        try withSignIn(accounts: "") { stage in
            let tokens = try (0..<3).map { _ in try stage.appleLogin() }
            let subject = tokens[0].subject
            #expect(subject.hasPrefix("apple:"))
            #expect(try listed(subject, at: stage.gateway).count == 3)
            let ended = try martlet(["session", "end", "--id", tokens[0].session], at: stage.gateway)
            #expect(ended.ending == .exited(0) && ended.output == "session \(tokens[0].session) ended\n", "\(ended)")
            #expect(try stage.status(with: tokens[0].access) == 401)
            let again = try martlet(["session", "end", "--id", tokens[0].session], at: stage.gateway)
            #expect(again.ending == .exited(64) && again.errorOutput.contains("no such session"), "\(again)")
            let lines = try martlet(["session", "list", "--subject", subject], at: stage.gateway).output.split(
                separator: "\n")
            #expect(lines.count == 2 && lines[0].hasPrefix("\(tokens[2].session)\tapple\tcreated "), "\(lines)")
            let all = try martlet(["session", "end", "--subject", subject, "--json"], at: stage.gateway)
            #expect(all.output == #"{"subject":"\#(subject)","ended":"all"}"# + "\n", "\(all)")
            #expect(try stage.status(with: tokens[1].access) == 401)
            let empty = try martlet(["session", "list", "--subject", subject, "--json"], at: stage.gateway)
            #expect(empty.output == "[]\n" && empty.ending == .exited(0), "\(empty)")
            let none = try martlet(["session", "end", "--subject", subject], at: stage.gateway)
            #expect(none.ending == .exited(64) && none.errorOutput.contains("no such subject"), "\(none)")
            for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "/disable"), ("POST", "/enable")] {
                expectRejection(
                    try ask(method, "/subjects/\(subject)\(path)", at: stage.gateway), 404, "not_found", path)
            }
        }
    }

    @Test func `what makes no sense is exit 64, and no gateway 69`() throws {
        try withSignIn { stage in
            for words in [
                ["session"], ["session", "end"], ["session", "end", "--id", ""], ["session", "list", "--id", "x"],
                ["session", "end", "--subject", "", "--id", "x"], ["session", "end", "--subject", "x", "--offline"],
                ["sessions"], ["sessions", "end"], ["sessions", "end", "--all"], ["sessions", "x", "y"],
                ["sessions", "x", "--subject", "y"], ["sessions", "end", "x", "--all", "--subject", "y"],
                ["subject"], ["subject", "disable"], ["subject", "remove", "x"], ["subject", "x", "disable"],
            ] {
                let result = try martlet(words, at: stage.gateway)
                #expect(result.ending == .exited(64), "\(words): \(result)")
            }
        }
        let unused = ["--admin", "http://127.0.0.1:1"]
        for words in [
            ["session", "list", "--subject", "x"], ["session", "end", "--id", "x"], ["account", "show", "x"],
            ["sessions", "x"], ["subject", "x"],
        ] {
            let result = try run(try Executable.martlet(), words + unused)
            #expect(result.ending == .exited(69), "\(words): \(result)")
        }
    }
}

@Suite(.timeLimit(.minutes(3))) struct SubjectCommandTests {
    @Test func `a disabled account is out everywhere within a second, and back as if nothing had been`() throws {
        try withPair("workers: 2") { stage, second, _ in
            let tokens = try stage.appleLogin()
            let password = ["username": "alice", "password": SignInStage.password]
            #expect(try stage.post("/auth/link/password", bearer: tokens.access, password).status == 204)
            let direct = try stage.apple.token()
            let basic = Data("alice:\(SignInStage.password)".utf8).base64EncodedString()
            let clients = try [stage.gateway, second].flatMap { gateway in
                try [bearer(tokens.access), bearer(direct), [("Authorization", "Basic \(basic)")]].map {
                    (client: try gateway.connect(), fields: $0)
                }
            }
            /// With a session, a direct token and a password at both instances, on connections that have been used.
            func statuses() throws -> [Int] {
                try clients.map { try $0.client.exchange("GET", "/who", $0.fields).status }
            }
            #expect(try statuses() == [200, 200, 200, 200, 200, 200])

            let disabled = try ask("POST", "/subjects/\(tokens.subject)/disable", at: stage.gateway)
            #expect(disabled.status == 200 && disabled.object["state"] as? String == "disabled", "\(disabled)")
            try waitUntil("it is out", within: .seconds(1)) { try statuses() == [403, 403, 403, 403, 403, 403] }
            let rejection = try clients[0].client.exchange("GET", "/who", clients[0].fields)
            expectRejection(rejection, 403, "not_allowed")
            for gateway in [stage.gateway, second] {
                try waitUntil("it is logged") { gateway.log.contains { $0["reason"] == "account.disabled" } }
            }
            expectRejection(
                try stage.post("/auth/login/apple", ["identity_token": try stage.apple.token()]), 403, "not_allowed")
            expectRejection(try stage.post("/auth/login/password", password), 403, "not_allowed")
            expectRejection(try stage.post("/auth/refresh", ["refresh_token": tokens.refresh]), 403, "not_allowed")
            expectRejection(try stage.send("GET", "/auth/session", bearer: tokens.access), 403, "not_allowed")

            // Neither a reload nor a new process forgets it.
            #expect(try ask("POST", "/reload", at: second).status == 200)
            let third = try stage.startAnother()
            for gateway in [second, third] {
                #expect(try gateway.get("/who", bearer(tokens.access)).status == 403)
                #expect(try gateway.get("/who", bearer(direct)).status == 403)
            }
            try third.stop()
            let shown = try second.askAdmin("/subjects/\(tokens.subject)").object
            #expect(shown["disabled"] as? Bool == true && shown["disabled_at"] is Int && shown["sessions"] as? Int == 1)

            #expect(try ask("POST", "/subjects/\(tokens.subject)/enable", at: second).status == 200)
            try waitUntil("it is back", within: .seconds(1)) { try statuses() == [200, 200, 200, 200, 200, 200] }
            // The rejected refresh has used nothing up.
            let refreshed = try Tokens(stage.post("/auth/refresh", ["refresh_token": tokens.refresh]))
            #expect(refreshed.session == tokens.session)
        }
    }

    @Test func `a tunnel ends with the account's admission, another's goes on`() throws {
        let redis = try RedisServer()
        try withSignIn(
            users: ["alice", "bob"], more: "store: { url: \"\(redis.url)\" }", script: EchoScript().script
        ) { stage in
            let (alice, bob) = (try stage.passwordLogin(), try stage.passwordLogin("bob"))
            let blocked = try stage.gateway.webSocket("/ws", bearer(alice.access))
            let kept = try stage.gateway.webSocket("/ws", bearer(bob.access))
            try blocked.expectEcho("hello")
            #expect(try ask("POST", "/subjects/\(alice.subject)/disable", at: stage.gateway).status == 200)
            let start = Stopwatch()
            try blocked.expectClose(4401, "session revoked")
            #expect(start.undisturbed < .seconds(1))
            try kept.expectEcho("still here")
        }
    }

    @Test func `what one instance missed reaches it with the store`() throws {
        try withPair { stage, second, redis in
            let tokens = try stage.appleLogin()
            #expect(try second.get("/who", bearer(tokens.access)).status == 200)
            _ = try redis.command("CLIENT KILL TYPE pubsub")
            #expect(try ask("POST", "/subjects/\(tokens.subject)/disable", at: stage.gateway).status == 200)
            try waitUntil("it is out", within: .seconds(2)) {
                try second.get("/who", bearer(tokens.access)).status == 403
            }
        }
    }

    @Test func `the command shows, blocks, lets in and deletes, with the sessions in memory`() throws {
        try withSignIn { stage in
            let tokens = try stage.passwordLogin()
            let shown = try martlet(["account", "show", tokens.subject], at: stage.gateway)
            let lines = shown.output.split(separator: "\n")
            #expect(
                lines.count == 2 && lines[0].hasPrefix("\(tokens.subject)\tactive\t2")
                    && lines[0].hasSuffix("\tsessions 1") && lines[1].hasPrefix("password\tlinked ")
                    && lines[1].contains("\talice\tcredential "), "\(shown)")
            let disabled = try martlet(["account", "disable", tokens.subject, "--json"], at: stage.gateway)
            #expect(disabled.output.contains(#""state":"disabled""#) && disabled.ending == .exited(0), "\(disabled)")
            // The response says that every loop of this instance applies it.
            #expect(try stage.status(with: tokens.access) == 403)
            let enabled = try martlet(["account", "enable", tokens.subject], at: stage.gateway)
            #expect(enabled.output == "account \(tokens.subject) enabled\n", "\(enabled)")
            #expect(try stage.status(with: tokens.access) == 200)

            let deleted = try martlet(["account", "delete", tokens.subject], at: stage.gateway)
            let gone = "account \(tokens.subject) is being deleted\nall sessions of the account ended\n"
            #expect(deleted.ending == .exited(0) && deleted.output == gone, "\(deleted)")
            #expect(try stage.status(with: tokens.access) == 401)
            try waitUntil("it is deleted") {
                try ask("DELETE", "/subjects/\(tokens.subject)", at: stage.gateway).status == 404
            }
            let unknown = try martlet(["account", "disable", tokens.subject], at: stage.gateway)
            #expect(unknown.ending == .exited(64) && unknown.errorOutput.contains("account not found"), "\(unknown)")
            #expect(try martlet(["account", "show", "usr_nobody"], at: stage.gateway).ending == .exited(64))
        }
    }

    @Test func `a throttled user is shown as such, and no secret`() throws {
        let redis = try RedisServer()
        try withSignIn(
            password: "throttle: { attempts: 2, ban: 10m }", more: "store: { url: \"\(redis.url)\" }"
        ) { stage in
            let tokens = try stage.passwordLogin()
            func lock() throws -> Any? {
                let shown = try stage.gateway.askAdmin("/subjects/\(tokens.subject)")
                #expect(!shown.text.contains("argon2"), "\(shown)")
                return (shown.object["identities"] as? [[String: Any]])?.first?["lock"]
            }
            #expect(try lock() is NSNull)
            for _ in 0..<3 {
                _ = try stage.post("/auth/login/password", ["username": "alice", "password": "wrong horse battery"])
            }
            let throttled = try #require(try lock() as? [String: Any])
            #expect(throttled["known_networks"] as? Int == 1, "\(throttled)")
        }
    }

    @Test func `deleting ends the sessions everywhere within a second`() throws {
        try withPair { stage, second, _ in
            let tokens = try stage.appleLogin()
            #expect(try second.get("/who", bearer(tokens.access)).status == 200)
            #expect(try ask("DELETE", "/subjects/\(tokens.subject)", at: stage.gateway).status == 204)
            try waitUntil("it is out", within: .seconds(1)) {
                try second.get("/who", bearer(tokens.access)).status == 401
            }
            expectRejection(try ask("DELETE", "/subjects/usr_nobody", at: stage.gateway), 404, "not_found")
        }
    }
}

@Suite(.timeLimit(.minutes(3))) struct OneNounTests {
    /// A command with the configuration of a gateway that may be running.
    private func martlet(_ arguments: String..., at stage: SignInStage) throws -> CommandResult {
        try run(
            try Executable.martlet(), arguments + ["--config", stage.gateway.folder.file("config.yaml")])
    }

    @Test func `the configuration finds the gateway, which knows the sessions in its memory`() throws {
        try withSignIn { stage in
            let tokens = try (0..<3).map { _ in try stage.passwordLogin() }
            let subject = tokens[0].subject
            let listed = try martlet("session", "list", "--subject", subject, "--limit", "1", at: stage)
            #expect(listed.output.hasPrefix("\(tokens[2].session)\tpassword\t"), "\(listed)")
            #expect(listed.output.split(separator: "\n").count == 1, "\(listed)")
            #expect(try martlet("session", "end", "--id", tokens[0].session, at: stage).ending == .exited(0))
            #expect(try stage.status(with: tokens[0].access) == 401)
            let set = try martlet("account", "set", subject, "role=staff", at: stage)
            #expect(set.ending == .exited(0) && set.output.contains(#"{"role":"staff"}"#), "\(set)")
            let shown = try martlet("account", "show", subject, "--json", at: stage)
            let account = try JSONSerialization.jsonObject(with: Data(shown.output.utf8)) as? [String: Any] ?? [:]
            #expect(account["sessions"] as? Int == 2 && account["state"] as? String == "active", "\(shown)")
            #expect(account["claims"] as? [String: String] == ["role": "staff"], "\(shown)")
            #expect(account["stored_claims"] is [String: Any] && account["profile"] is [String: Any], "\(shown)")
            #expect((account["identities"] as? [[String: Any]])?.first?["subject"] as? String == "alice", "\(shown)")
            let disabled = try martlet("account", "disable", subject, at: stage)
            #expect(disabled.output == "account \(subject) disabled\n" && disabled.errorOutput.isEmpty, "\(disabled)")
            #expect(try stage.status(with: tokens[1].access) == 403)
        }
    }

    @Test func `offline is the stores, whether or not the gateway runs`() throws {
        let redis = try RedisServer()
        try withSignIn(more: "store: { url: \"\(redis.url)\" }") { stage in
            let tokens = try (0..<3).map { _ in try stage.passwordLogin() }
            let subject = tokens[0].subject
            let listed = try martlet("session", "list", "--subject", subject, "--offline", at: stage)
            #expect(listed.output.split(separator: "\n").count == 3, "\(listed)")
            let id = tokens[0].session
            #expect(try martlet("session", "end", "--id", id, "--offline", at: stage).output == "session \(id) ended\n")
            try waitUntil("it is out", within: .seconds(1)) { try stage.status(with: tokens[0].access) == 401 }
            let shown = try martlet("account", "show", subject, "--offline", at: stage)
            #expect(
                shown.output.hasPrefix("\(subject)\tactive\t") && shown.output.contains("\tsessions unknown\n"),
                "\(shown)")
            try stage.gateway.stop()
            let online = try martlet("session", "list", "--subject", subject, at: stage)
            #expect(online.output.split(separator: "\n").count == 2 && online.errorOutput.isEmpty, "\(online)")
            let all = try martlet("session", "end", "--subject", subject, "--json", at: stage)
            #expect(all.output == #"{"subject":"\#(subject)","ended":"all"}"# + "\n", "\(all)")
            #expect(try martlet("session", "end", "--subject", "usr_none", at: stage).ending == .exited(64))
            let disabled = try martlet("account", "disable", subject, at: stage)
            #expect(disabled.output == "account \(subject) disabled\n", "\(disabled)")
        }
    }

    @Test func `a gateway that requires a token leaves it to the stores, unless it is named`() throws {
        try withSignIn { stage in
            let tokens = try stage.passwordLogin()
            let text = try String(contentsOfFile: stage.gateway.folder.file("config.yaml"), encoding: .utf8)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).filter {
                !$0.hasPrefix("  socket: ")
            }
            let admin = "\(stage.gateway.admin)"
            let other = lines.map { $0.hasPrefix("  address: ") ? "  address: \(admin)" : String($0) }
            let path = try stage.gateway.folder.write(other.joined(separator: "\n"), to: "outside.yaml")
            func command(_ arguments: String...) throws -> CommandResult {
                try run(try Executable.martlet(), arguments)
            }
            let shown = try command("account", "show", tokens.subject, "--config", path)
            #expect(shown.ending == .exited(0) && shown.output.contains("\tsessions 1\n"), "\(shown)")
            let disabled = try command("account", "disable", tokens.subject, "--config", path)
            #expect(disabled.ending == .exited(0) && disabled.output.contains("as soon as a running gateway"))
            #expect(disabled.errorOutput.hasPrefix("note: done in the stores"), "\(disabled)")
            #expect(disabled.errorOutput.contains("local_only"), "\(disabled)")
            try waitUntil("it is out") { try stage.status(with: tokens.access) == 403 }
            let ended = try command("session", "end", "--id", tokens.session, "--config", path)
            #expect(ended.ending == .exited(78) && ended.errorOutput.contains("local_only"), "\(ended)")
            let named = try command("account", "enable", tokens.subject, "--admin", "http://\(admin)")
            #expect(named.ending == .exited(69) && named.errorOutput.contains("local_only"), "\(named)")
        }
    }

    @Test func `the old names say the new ones, and keep their exit codes`() throws {
        try withSignIn { stage in
            let tokens = try (0..<2).map { _ in try stage.passwordLogin() }
            let subject = tokens[0].subject
            let listed = try martlet("sessions", subject, at: stage)
            #expect(listed.output.split(separator: "\n").count == 2 && listed.ending == .exited(0), "\(listed)")
            let note = "martlet: 'sessions' is 'session list --subject SUBJECT' now; the old name goes with the next "
            #expect(listed.errorOutput == note + "version\n")
            let ended = try martlet("sessions", "end", tokens[0].session, at: stage)
            #expect(ended.output == "session \(tokens[0].session) ended\n", "\(ended)")
            #expect(try martlet("sessions", "end", tokens[0].session, at: stage).ending == .exited(1))
            let disabled = try martlet("subject", "disable", subject, at: stage)
            #expect(disabled.errorOutput.contains("'account disable SUBJECT'"), "\(disabled)")
            #expect(disabled.ending == .exited(0) && disabled.output == "account \(subject) disabled\n", "\(disabled)")
            #expect(try martlet("subject", "usr_nobody", at: stage).ending == .exited(1))
            #expect(try martlet("subject", "disable", at: stage).ending == .exited(64))
        }
        let help = try run(try Executable.martlet(), ["help"])
        #expect(!help.output.contains("\n  sessions ") && !help.output.contains("\n  subject "))
    }
}
