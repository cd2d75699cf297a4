import Foundation
import MartletTesting
import Testing

/// A command on the stores of a stage; OneNounTests has those at its gateway.
private func martlet(_ arguments: [String], at stage: SignInStage) throws -> CommandResult {
    let offline = arguments.starts(with: ["account", "list"]) ? [] : ["--offline"]
    return try run(
        try Executable.martlet(),
        arguments + offline + ["--config", stage.gateway.folder.file("config.yaml")])
}

@Suite(.timeLimit(.minutes(2))) struct AccountCommandTests {
    @Test func `a disabled account is out within a second with every credential, and may come back`() throws {
        let redis = try RedisServer()
        try withSignIn(server: "workers: 4", more: "store: { url: \"\(redis.url)\" }") { stage in
            let tokens = try stage.appleLogin()
            let password = ["username": "alice", "password": SignInStage.password]
            #expect(try stage.post("/auth/link/password", bearer: tokens.access, password).status == 204)
            let direct = try stage.apple.token()
            let basic = Data("alice:\(SignInStage.password)".utf8).base64EncodedString()
            /// The statuses with a session, a direct token and a password.
            func statuses() throws -> [Int] {
                [
                    try stage.status(with: tokens.access), try stage.status(with: direct),
                    try stage.gateway.get("/who", [("Authorization", "Basic \(basic)")]).status,
                ]
            }
            #expect(try statuses() == [200, 200, 200])

            let disabled = try martlet(["account", "disable", tokens.subject], at: stage)
            #expect(
                disabled.output == "account \(tokens.subject) disabled\n" && disabled.ending == .exited(0),
                "\(disabled)")
            try waitUntil("it is out", within: .seconds(1)) { try statuses() == [403, 403, 403] }
            let identityToken = ["identity_token": try stage.apple.token()]
            expectRejection(try stage.post("/auth/login/apple", identityToken), 403, "not_allowed")
            expectRejection(try stage.post("/auth/login/password", password), 403, "not_allowed")
            expectRejection(try stage.post("/auth/refresh", ["refresh_token": tokens.refresh]), 403, "not_allowed")
            try waitUntil("it is logged") { stage.gateway.log.contains { $0["reason"] == "account.disabled" } }
            let listed = try martlet(["account", "list", "--disabled"], at: stage)
            #expect(listed.output.hasPrefix("\(tokens.subject)\tdisabled\t"), "\(listed)")

            #expect(try martlet(["account", "enable", tokens.subject], at: stage).ending == .exited(0))
            try waitUntil("everything is accepted again", within: .seconds(1)) { try statuses() == [200, 200, 200] }
            #expect(try stage.appleLogin().subject == tokens.subject)
        }
    }

    @Test func `without a shared store the running gateway blocks the sessions itself`() throws {
        try withSignIn { stage in
            let tokens = try stage.appleLogin()
            #expect(try stage.status(with: tokens.access) == 200)
            let disabled = try martlet(["account", "disable", tokens.subject], at: stage)
            #expect(disabled.ending == .exited(0) && disabled.output.contains("as soon as a running gateway"))
            let identityToken = ["identity_token": try stage.apple.token()]
            expectRejection(try stage.post("/auth/login/apple", identityToken), 403, "not_allowed")
            try waitUntil("it is out") { try stage.status(with: tokens.access) == 403 }
            #expect(try martlet(["account", "enable", tokens.subject], at: stage).ending == .exited(0))
            try waitUntil("it is back") { try stage.status(with: tokens.access) == 200 }
            #expect(try martlet(["session", "list", "--subject", tokens.subject], at: stage).ending == .exited(78))
        }
    }

    @Test func `shows accounts with their identities`() throws {
        try withSignIn { stage in
            let tokens = try stage.appleLogin()
            let shown = try martlet(["account", "show", tokens.subject], at: stage)
            #expect(shown.output.hasPrefix("\(tokens.subject)\tactive\t") && shown.output.contains("\napple\tlinked "))
            let json = try martlet(["account", "show", tokens.subject, "--json"], at: stage)
            let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any] ?? [:]
            #expect(object["subject"] as? String == tokens.subject && object["state"] as? String == "active")
            #expect((object["identities"] as? [[String: Any]])?.first?["provider"] as? String == "apple")
            let list = try martlet(["account", "list", "--json"], at: stage)
            let accounts = try JSONSerialization.jsonObject(with: Data(list.output.utf8)) as? [[String: Any]] ?? []
            #expect(accounts.map { $0["subject"] as? String } == [tokens.subject], "\(list)")
            #expect(try martlet(["account", "list", "--disabled", "--json"], at: stage).output == "[]\n")
        }
    }

    @Test func `what makes no sense is exit 64`() throws {
        try withSignIn { stage in
            for words in [
                ["account"], ["account", "remove", "x"], ["account", "show"], ["account", "list", "x"],
                ["account", "show", "usr_nobody"], ["account", "disable", "usr_nobody"],
                ["account", "show", "x", "--disabled"], ["session"], ["session", "list"],
                ["session", "list", "--subject", "x", "--id", "y"],
                ["session", "list", "--subject", "x", "--limit", "0"],
                ["session", "list", "--subject", "x", "--limit", "many"],
                ["session", "end", "--subject", "x", "--limit", "1"],
                ["session", "end", "--subject", "x", "--after", "y"],
                ["session", "end", "--subject", "x", "--provider", "apple"],
            ] {
                let result = try martlet(words, at: stage)
                #expect(result.ending == .exited(64), "\(words): \(result)")
            }
        }
    }
}

@Suite(.timeLimit(.minutes(2))) struct SessionCommandTests {
    @Test func `lists the sessions of a subject, ends one, and all`() throws {
        let redis = try RedisServer()
        try withSignIn(more: "store: { url: \"\(redis.url)\" }") { stage in
            let first = try stage.appleLogin()
            let second = try stage.appleLogin()
            let third = try stage.appleLogin()
            func listed() throws -> Set<String> {
                let result = try martlet(["session", "list", "--subject", first.subject, "--json"], at: stage)
                let list = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
                return Set(list.compactMap { $0["session_id"] as? String })
            }
            #expect(try listed() == [first.session, second.session, third.session])
            let lines = try martlet(["session", "list", "--subject", first.subject], at: stage).output
            #expect(lines.split(separator: "\n").count == 3 && lines.contains("\(first.session)\tapple\tcreated "))

            let one = try martlet(
                ["session", "end", "--subject", first.subject, "--id", second.session], at: stage)
            #expect(one.ending == .exited(0) && one.output == "session \(second.session) ended\n", "\(one)")
            try waitUntil("it is out", within: .seconds(1)) { try stage.status(with: second.access) == 401 }
            #expect(try stage.status(with: first.access) == 200)
            let again = try martlet(
                ["session", "end", "--subject", first.subject, "--id", second.session], at: stage)
            #expect(again.ending == .exited(64), "\(again)")

            let all = try martlet(["session", "end", "--subject", first.subject], at: stage)
            #expect(all.output == "all sessions of \(first.subject) ended\n")
            try waitUntil("all are out", within: .seconds(1)) {
                try [first, third].allSatisfy { try stage.status(with: $0.access) == 401 }
            }
            #expect(try listed().isEmpty)
        }
    }

    /// The ids that `session list` prints for a subject.
    private static func listed(
        _ subject: String, _ options: [String] = [], at stage: SignInStage
    ) throws -> [String] {
        let result = try martlet(["session", "list", "--subject", subject, "--json"] + options, at: stage)
        guard result.ending == .exited(0) else { throw TestFailure("\(options): \(result)") }
        let list = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
        return list.compactMap { $0["session_id"] as? String }
    }

    @Test func `lists a part: after a session, up to a limit, of one provider`() throws {
        let redis = try RedisServer()
        try withSignIn(more: "store: { url: \"\(redis.url)\" }") { stage in
            let first = try stage.appleLogin()
            let subject = first.subject
            let password = ["username": "alice", "password": SignInStage.password]
            #expect(try stage.post("/auth/link/password", bearer: first.access, password).status == 204)
            #expect(try stage.post("/auth/login/password", password).status == 200)
            _ = try stage.appleLogin()
            let all = try Self.listed(subject, at: stage)
            #expect(all.count == 3 && all.last == first.session)
            for limit in 1...4 {
                #expect(try Self.listed(subject, ["--limit", "\(limit)"], at: stage) == Array(all.prefix(limit)))
            }
            #expect(try Self.listed(subject, ["--after", all[0]], at: stage) == Array(all.dropFirst()))
            #expect(try Self.listed(subject, ["--after", all[0], "--limit", "1"], at: stage) == [all[1]])
            #expect(try Self.listed(subject, ["--after", all[2]], at: stage).isEmpty)
            #expect(try Self.listed(subject, ["--provider", "password"], at: stage) == [all[1]])
            #expect(try Self.listed(subject, ["--provider", "apple", "--limit", "1"], at: stage) == [all[0]])
            #expect(
                try Self.listed(subject, ["--provider", "apple", "--after", all[1]], at: stage) == [first.session])
            #expect(try Self.listed(subject, ["--provider", "wechat"], at: stage).isEmpty)
            let lines = try martlet(["session", "list", "--subject", subject, "--limit", "1"], at: stage).output
            #expect(lines.split(separator: "\n").count == 1 && lines.hasPrefix("\(all[0])\tapple\t"), "\(lines)")
            let unknown = try martlet(["session", "list", "--subject", subject, "--after", "ses_x"], at: stage)
            #expect(unknown.ending == .exited(64) && unknown.errorOutput.contains("session.unknown"), "\(unknown)")
        }
    }

    @Test func `says in JSON what it has ended`() throws {
        let redis = try RedisServer()
        try withSignIn(more: "store: { url: \"\(redis.url)\" }") { stage in
            let first = try stage.appleLogin()
            let second = try stage.appleLogin()
            func ended(_ options: String...) throws -> [String: String] {
                let words = ["session", "end", "--json", "--subject", first.subject]
                let result = try martlet(words + options, at: stage)
                #expect(result.ending == .exited(0) && result.output.hasSuffix("}\n"), "\(result)")
                let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
                return try #require(object as? [String: String])
            }
            #expect(try ended("--id", second.session) == ["subject": first.subject, "ended": second.session])
            #expect(try Self.listed(first.subject, at: stage) == [first.session])
            #expect(try ended() == ["subject": first.subject, "ended": "all"])
            #expect(try Self.listed(first.subject, at: stage).isEmpty)
            let again = try martlet(
                ["session", "end", "--json", "--subject", first.subject, "--id", second.session], at: stage)
            #expect(again.ending == .exited(64) && again.output.isEmpty, "\(again)")
        }
    }
}
