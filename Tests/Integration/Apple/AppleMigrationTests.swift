import Foundation
import MartletCore
import MartletTesting
import Testing

/// An app that moves between two teams of the simulated Apple, and the gateway's account store.
private struct MigrationStage {
    static let oldTeam = "SIMTEAM001"
    static let newTeam = "NEWTEAM001"

    let stage: AppleLifeStage

    init() throws {
        stage = try AppleLifeStage()
        let key = try stage.order(
            "/simulator/key", ["team_id": Self.newTeam, "key_id": "NEWKEY0001"])
        try stage.folder.write(try #require(key.member("private_key")), to: "NewKey.p8")
    }

    func accept() throws {
        try stage.order("/simulator/transfer", ["from_team": Self.oldTeam, "to_team": Self.newTeam])
    }

    /// The configuration of the new team.
    func newConfiguration(_ rate: String = "2000/s", until: String? = "2099-01-01") -> String {
        let migration = until.map { "migration: { from_team: \(Self.oldTeam), until: \($0) }" } ?? ""
        return stage.configuration(provider: "check: { rate: \(rate) }\n  \(migration)")
            .replacingOccurrences(of: Self.oldTeam + "\n", with: Self.newTeam + "\n")
            .replacingOccurrences(of: "SIMKEY0001", with: "NEWKEY0001")
            .replacingOccurrences(of: "AuthKey.p8", with: "NewKey.p8")
    }

    func oldConfiguration(_ rate: String = "2000/s") -> String {
        stage.configuration(provider: "check: { rate: \(rate) }")
    }

    /// The new subject of a user of the old team.
    func newSubject(_ subject: String) throws -> String {
        let names = try stage.order(
            "/simulator/transfer", ["from_team": Self.oldTeam, "to_team": Self.newTeam, "subject": subject])
        return try #require(names.member("sub"))
    }

    func migrate(_ configuration: String, _ arguments: String..., input: String = "") throws -> CommandResult {
        let path = try stage.folder.write(configuration, to: "migrate.yaml")
        return try run(
            try Executable.martlet(), ["apple", "migrate"] + arguments + ["--config", path], input: input,
            within: .seconds(120))
    }

    /// Runs a command and kills it when the account store has so many rows that meet a condition.
    func killing(_ configuration: String, _ arguments: [String], at count: Int, where condition: String) throws -> Int {
        let path = try stage.folder.write(configuration, to: "migrate.yaml")
        let process = try ChildProcess(
            try Executable.martlet(), ["apple", "migrate"] + arguments + ["--config", path], output: stage.folder,
            name: "migrate-\(UInt32.random(in: 0 ... .max))")
        try waitUntil("\(count) users are done", within: .seconds(60)) { try self.count(condition) >= count }
        process.kill(9)
        _ = try process.wait()
        return try self.count(condition)
    }

    func sql(_ text: String) throws -> String {
        let result = try run(
            try Executable.named("sqlite3"), ["-cmd", ".timeout 10000", stage.folder.file("accounts.db")], input: text)
        guard result.ending == .exited(0) else { throw TestFailure("sqlite3: \(result)") }
        return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    func count(_ condition: String) throws -> Int {
        try #require(Int(try sql("SELECT count(*) FROM identity_transfers WHERE \(condition)")))
    }

    /// Adds users to the account store, and to Apple's team.
    func addUsers(_ numbers: Range<Int>) throws {
        let rows = numbers.map { number in
            let (id, subject) = ("idn_\(number)", AppleLifeStage.subject(number))
            return """
                INSERT INTO accounts (subject, created_at, kept_claims) VALUES ('usr_\(number)', 1, '{}');
                INSERT INTO identities (id, account, provider, subject, created_at)
                  VALUES ('\(id)', 'usr_\(number)', 'apple', '\(subject)', 1);
                INSERT INTO identity_subjects (provider, subject, identity) VALUES ('apple', '\(subject)', '\(id)');
                """
        }
        _ = try sql("BEGIN;\n\(rows.joined(separator: "\n"))\nCOMMIT;")
        for number in numbers {
            try stage.order("/simulator/user", ["subject": AppleLifeStage.subject(number), "state": "authorized"])
        }
    }

    /// Logs a subject in at a gateway.
    func login(_ subject: String, at gateway: Gateway, hasCode: Bool = false) throws -> HTTPMessage {
        let login = try stage.order(
            "/simulator/token", ["audience": AppleLifeStage.app, "subject": subject, "code": hasCode])
        var body = ["identity_token": try #require(login.member("identity_token"))]
        body["authorization_code"] = login.member("authorization_code")
        return try AppleLifeStage.post("/auth/login/apple", body, at: gateway)
    }

    /// The states that the two endpoints show.
    static func states(_ token: String, at gateway: Gateway) throws -> [String] {
        try ["/auth/account", "/auth/session"].map { path in
            let response = try gateway.get(path, [("Authorization", "Bearer \(token)")])
            let identities = response.object["identities"] as? [[String: Any]]
            return try #require(identities?.first?["state"] as? String, "\(path): \(response)")
        }
    }
}

extension HTTPMessage {
    fileprivate var token: String {
        get throws {
            guard status == 200, let token = member("access_token") else { throw TestFailure("no login: \(self)") }
            return token
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct `An app that moves to another team` {
    @Test func `a second run for the same team gives way, and changes nothing`() throws {
        let stage = try MigrationStage()
        // The gateway makes the tables.
        try Gateway(stage.oldConfiguration(), in: stage.stage.folder).stop()
        let later = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + 600000"
        _ = try stage.sql("INSERT INTO leases VALUES ('migrate:\(MigrationStage.oldTeam)', 'another', \(later))")
        let second = try stage.migrate(stage.oldConfiguration(), "export", "--to", MigrationStage.newTeam)
        #expect(second.ending == .exited(69) && second.errorOutput.contains("[apple.migration_running]"), "\(second)")
        // What changes nothing may run, and so may the other team.
        let trial = try stage.migrate(
            stage.oldConfiguration(), "export", "--to", MigrationStage.newTeam, "--dry-run")
        #expect(trial.ending == .exited(0), "\(trial)")
        #expect(try stage.migrate(stage.newConfiguration(), "import").ending == .exited(0))
        // A run that was killed blocks the next one until its lease has expired.
        _ = try stage.sql("UPDATE leases SET expires_at = \(later.replacing("600000", with: "4000"))")
        let next = try stage.migrate(stage.oldConfiguration(), "export", "--to", MigrationStage.newTeam)
        #expect(next.ending == .exited(0), "\(next)")
        #expect(try stage.sql("SELECT count(*) FROM leases WHERE name LIKE 'migrate:%'") == "0")
    }

    @Test func `a thousand users move, over kills in the middle`() throws {
        let teams = try MigrationStage()
        let stage = teams.stage
        let gateway = try Gateway(teams.oldConfiguration(), in: stage.folder)
        let first = try teams.login(AppleLifeStage.subject(0), at: gateway, hasCode: true)
        let (token, subject) = (try first.token, try #require(first.member("subject")))
        try teams.addUsers(1..<1000)
        try teams.accept()
        let begin = ContinuousClock.now

        let trial = try teams.migrate(teams.oldConfiguration(), "export", "--to", MigrationStage.newTeam, "--dry-run")
        #expect(
            trial.ending == .exited(0) && trial.output == "1000 would be exported, 0 already, 0 failed\n", "\(trial)")
        #expect(try MigrationStage.states(token, at: gateway) == ["authorized", "authorized"])

        let exported = try teams.killing(
            teams.oldConfiguration("300/s"), ["export", "--to", MigrationStage.newTeam], at: 300, where: "1 = 1")
        #expect((300..<1000).contains(exported))
        let rest = try teams.migrate(teams.oldConfiguration(), "export", "--to", MigrationStage.newTeam)
        #expect(rest.ending == .exited(0), "\(rest)")
        #expect(rest.output == "\(1000 - exported) exported, \(exported) already, 0 failed\n", "\(rest)")
        #expect(try teams.count("done_at IS NULL") == 1000)
        #expect(try MigrationStage.states(token, at: gateway) == ["transferred", "transferred"])
        let middle = ContinuousClock.now

        let imported = try teams.killing(
            teams.newConfiguration("300/s"), ["import"], at: 300, where: "done_at IS NOT NULL")
        #expect((300..<1000).contains(imported))
        let last = try teams.migrate(teams.newConfiguration(), "import", "--json")
        #expect(last.ending == .exited(0), "\(last)")
        let document = try JSONSerialization.jsonObject(with: Data(last.output.utf8)) as? [String: Any]
        #expect(document?["imported"] as? Int == 1000 - imported && document?["already"] as? Int == imported)
        #expect(document?["failed"] as? Int == 0 && document?["stopped"] is NSNull)
        #expect(try teams.count("done_at IS NOT NULL") == 1000)
        #expect(try teams.sql("SELECT count(*) FROM identities WHERE subject LIKE '001901.%'") == "1000")
        #expect(try teams.sql("SELECT count(*) FROM accounts") == "1000")
        print(
            "1000 users: killed after \(exported) of the export and \(imported) of the import; "
                + "export \(middle - begin), import \(ContinuousClock.now - middle)")

        // The session goes on, and there is one event for each user.
        #expect(try AppleLifeStage.status(token, at: gateway) == 200)
        #expect(try MigrationStage.states(token, at: gateway) == ["authorized", "authorized"])
        _ = try stage.event("identity.transferred", of: subject, within: .seconds(60))
        try waitUntil("all events have arrived", within: .seconds(90)) {
            stage.events.count { $0.type == "identity.transferred" } >= 1000
        }
        let transferred = stage.events.filter { $0.type == "identity.transferred" }
        #expect(transferred.count == 1000 && Set(transferred.map(\.subject)).count == 1000)
        #expect(transferred.allSatisfy { $0.data["provider"] as? String == "apple" })
        try gateway.stop()

        let next = try Gateway(teams.newConfiguration(), in: stage.folder)
        let again = try teams.login(teams.newSubject(AppleLifeStage.subject(0)), at: next, hasCode: true)
        #expect(again.status == 200 && again.member("subject") == subject)
        #expect(again.object["new_account"] as? Bool == false)
        try next.stop()
    }

    @Test func `a login at the new team re-keys an exported user, once`() throws {
        let teams = try MigrationStage()
        let stage = teams.stage
        let old = try Gateway(teams.oldConfiguration(), in: stage.folder)
        let before = try (1...3).map { try teams.login(AppleLifeStage.subject($0), at: old, hasCode: true) }
        let subjects = try before.map { try #require($0.member("subject")) }
        try teams.accept()
        // The third is not exported.
        _ = try teams.sql("UPDATE identities SET state = 2 WHERE subject = '\(AppleLifeStage.subject(3))'")
        let export = try teams.migrate(teams.oldConfiguration(), "export", "--to", MigrationStage.newTeam)
        #expect(export.ending == .exited(1) && export.output == "2 exported, 0 already, 1 failed\n", "\(export)")
        let line = "failed: \(AppleLifeStage.subject(3)) (\(subjects[2])): identity.revoked"
        #expect(export.errorOutput.contains(line), "\(export)")
        try old.stop()

        let new = try Gateway(teams.newConfiguration(), in: stage.folder)
        let names = try (1...3).map { try teams.newSubject(AppleLifeStage.subject($0)) }
        let login = try teams.login(names[0], at: new, hasCode: true)
        #expect(login.member("subject") == subjects[0] && login.object["new_account"] as? Bool == false, "\(login)")
        #expect(try MigrationStage.states(login.token, at: new) == ["authorized", "authorized"])
        #expect(try teams.login(names[0], at: new).member("subject") == subjects[0])
        #expect(try teams.login(AppleLifeStage.subject(1), at: new).member("subject") == subjects[0], "an old token")
        #expect(new.log.contains { $0["event"] == "identity transferred" })
        // A bearer token is a first sight, too.
        let bearer = try stage.order(
            "/simulator/token", ["audience": AppleLifeStage.app, "subject": names[1]])
        let token = try #require(bearer.member("identity_token"))
        #expect(try AppleLifeStage.status(token, at: new) == 200)
        #expect(try teams.login(names[1], at: new).member("subject") == subjects[1])
        let stranger = try teams.login(names[2], at: new)
        #expect(stranger.object["new_account"] as? Bool == true, "never linked without an export")
        for subject in subjects.prefix(2) { _ = try stage.event("identity.transferred", of: subject) }
        #expect(stage.events.count { $0.type == "identity.transferred" } == 2)
        let rest = try teams.migrate(teams.newConfiguration(), "import")
        #expect(rest.ending == .exited(0) && rest.output == "0 imported, 2 already, 0 failed\n", "\(rest)")
        try new.stop()
    }

    @Test(arguments: ["2020-01-01", nil]) func `outside the window no user is recognized`(until: String?) throws {
        let teams = try MigrationStage()
        let old = try Gateway(teams.oldConfiguration(), in: teams.stage.folder)
        let before = try teams.login(AppleLifeStage.subject(1), at: old, hasCode: true)
        try old.stop()
        try teams.accept()
        #expect(
            try teams.migrate(teams.oldConfiguration(), "export", "--to", MigrationStage.newTeam).ending == .exited(0))
        let new = try Gateway(teams.newConfiguration(until: until), in: teams.stage.folder)
        let login = try teams.login(teams.newSubject(AppleLifeStage.subject(1)), at: new)
        #expect(login.object["new_account"] as? Bool == true && login.member("subject") != before.member("subject"))
        try new.stop()
        let conflict = try teams.migrate(teams.newConfiguration(), "import")
        #expect(conflict.ending == .exited(1) && conflict.errorOutput.contains("transfer.conflict"), "\(conflict)")
    }

    @Test func `a file carries users to a copy of the store`() throws {
        let teams = try MigrationStage()
        let folder = teams.stage.folder
        let gateway = try Gateway(teams.oldConfiguration(), in: folder)
        try gateway.stop()
        try teams.addUsers(1..<11)
        for suffix in [""] {
            try FileManager.default.copyItem(
                atPath: folder.file("accounts.db") + suffix, toPath: folder.file("copy.db") + suffix)
        }
        try teams.accept()
        let file = folder.file("users.jsonl")
        let export = try teams.migrate(
            teams.oldConfiguration(), "export", "--to", MigrationStage.newTeam, "--output", file)
        #expect(export.output == "10 exported, 0 already, 0 failed\n", "\(export)")
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(text.split(separator: "\n").count == 10)
        let printed = try teams.migrate(
            teams.oldConfiguration(), "export", "--to", MigrationStage.newTeam, "--output", "-")
        #expect(printed.output == text && printed.errorOutput == "0 exported, 10 already, 0 failed\n", "\(printed)")
        let copy = teams.newConfiguration().replacingOccurrences(of: "accounts.db", with: "copy.db")
        let trial = try teams.migrate(copy, "import", file, "--dry-run")
        #expect(trial.output == "10 would be imported, 0 already, 0 failed\n", "\(trial)")
        let stranger = #"{"sub":"x","transfer_sub":"y","from_team":"A","to_team":"NEWTEAM001"}"#
        let result = try teams.migrate(copy, "import", "-", input: text + stranger + "\n")
        #expect(result.ending == .exited(1) && result.output == "10 imported, 0 already, 1 failed\n", "\(result)")
        #expect(result.errorOutput.contains("failed: x: transfer.unknown"), "\(result)")
        let bad = try teams.migrate(copy, "import", "-", input: "{}\n")
        #expect(bad.ending == .exited(64) && bad.errorOutput.contains("line 1"), "\(bad)")
    }

    @Test func `what Apple may respond with fails users or stops the run, and nothing is lost`() throws {
        let teams = try MigrationStage()
        let stage = teams.stage
        let gateway = try Gateway(teams.oldConfiguration(), in: stage.folder)
        try gateway.stop()
        try teams.addUsers(1..<41)
        try teams.accept()
        func export(
            _ fault: [String: Any], _ times: Int, path: String = "/auth/usermigrationinfo"
        ) throws
            -> CommandResult
        {
            let order = fault.merging(["path": path, "times": times]) { first, _ in first }
            try stage.order("/simulator/trouble", order)
            let result = try teams.migrate(teams.oldConfiguration(), "export", "--to", MigrationStage.newTeam)
            try stage.order("/simulator/trouble", ["path": path, "times": 0])
            return result
        }
        let refused = try export(["error": "invalid_request"], 5)
        #expect(refused.ending == .exited(1) && refused.output == "35 exported, 0 already, 5 failed\n", "\(refused)")
        #expect(refused.errorOutput.contains(": apple.invalid_request\n"))
        // Each user who failed gets another attempt.
        _ = try teams.sql("DELETE FROM identity_transfers")
        for fault in [
            ["status": 500, "body": "<html>"], ["status": 200, "body": "<html>"], ["close": true],
            ["status": 200, "body": ""], ["status": 200, "body": String(repeating: "[", count: 20_000)],
        ] as [[String: Any]] {
            let result = try export(fault, 2)
            #expect(result.ending == .exited(0) && result.output == "40 exported, 0 already, 0 failed\n", "\(result)")
            _ = try teams.sql("DELETE FROM identity_transfers")
        }
        let begin = ContinuousClock.now
        let paused = try export(["status": 429, "retry_after": 3], 1)
        #expect(paused.output == "40 exported, 0 already, 0 failed\n", "\(paused)")
        #expect(ContinuousClock.now - begin >= .seconds(3))
        _ = try teams.sql("DELETE FROM identity_transfers")
        let stopped = try export(["error": "unauthorized_client"], 1000)
        #expect(stopped.ending == .exited(69) && stopped.output.hasPrefix("0 exported"), "\(stopped)")
        #expect(stopped.errorOutput.contains("stopped [apple.unauthorized_client]"))
        let keyless = try export(["error": "invalid_client"], 1000, path: "/auth/token")
        #expect(keyless.ending == .exited(69) && keyless.errorOutput.contains("[apple.invalid_client]"), "\(keyless)")
        let rest = try teams.migrate(teams.oldConfiguration(), "export", "--to", MigrationStage.newTeam)
        #expect(rest.output == "40 exported, 0 already, 0 failed\n", "\(rest)")
        let same = try teams.migrate(teams.oldConfiguration(), "export", "--to", MigrationStage.oldTeam)
        #expect(same.ending == .exited(64), "\(same)")
    }
}
