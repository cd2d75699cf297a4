import Foundation
import MartletTesting
import Testing

/// `martlet key` and what its keys do at a running gateway.
@Suite(.timeLimit(.minutes(3))) struct KeyCommandTests {
    @Test func `a key is shown once, and admits to the upstream in both headers`() throws {
        try KeyStage.run { stage in
            let made = try stage.key(
                "create", "--subject", "billing", "--claims", "role=partner", "--claims", "teams=a,b", "--scope",
                "read,write", "--expires", "90d")
            #expect(made.ending == .exited(0), "\(made)")
            let key = made.output.trimmingCharacters(in: .newlines)
            #expect(key.hasPrefix("mak_") && key.utf8.count == 92 && made.output == "\(key)\n")
            #expect(made.errorOutput.hasPrefix("key \(keyID(key)) of partners:billing created, expires "))
            #expect(!made.errorOutput.contains(key))
            for fields in [bearer(key), [("X-Api-Key", key)]] {
                let response = try stage.gateway.get("/v1", fields)
                #expect(response.status == 200, "\(response)")
                let request = try #require(stage.upstream.requests.last)
                #expect(request["X-Auth-Subject"] == "partners:billing" && request["X-Auth-Provider"] == "partners")
                #expect(request["X-Role"] == "partner" && request["X-Key"] == keyID(key))
                #expect(request["X-Scope"] == "read write")
                #expect(request["Authorization"] == nil && request["X-Api-Key"] == nil)
            }
            let both = try stage.gateway.get("/v1", bearer(key) + [("X-Api-Key", key)])
            expectRejection(both, 400, "request_invalid")
            #expect(try stage.gateway.get("/v1", [("X-Api-Key", key), ("X-Api-Key", key)]).status == 400)
            #expect(stage.upstream.requests.count == 2)
            try stage.waitForReason("auth.two_credentials")
            #expect(!stage.gateway.everything.contains(key))
        }
    }

    @Test func `whatever is no key, or one of another secret, is 401 with its reason in the log`() throws {
        try KeyStage.run { stage in
            let key = try stage.create("--subject", "billing")
            let last = key.last == "0" ? "1" : "0"
            let rows = [
                ("mak_", "api_key.malformed"), (key.dropLast() + last, "api_key.bad_checksum"),
                (key.uppercased(), "api_key."),
            ]
            for (text, reason) in rows {
                expectRejection(try stage.gateway.get("/v1", [("X-Api-Key", String(text))]), 401, "credential_invalid")
                try stage.waitForReason(reason)
            }
            #expect(try stage.gateway.get("/v1").status == 401)
            #expect(try stage.status(key) == 200)
        }
    }

    @Test func `keys are listed by id, with their state and last use`() throws {
        try KeyStage.run { stage in
            let keys = try ["billing", "shipping", "mobile"].map { try stage.create("--subject", $0) }
            #expect(try stage.key("revoke", keyID(keys[1])).output == "key \(keyID(keys[1])) revoked\n")
            let ids = keys.map(keyID).sorted()
            let lines = try stage.key("list").output.split(separator: "\n").map { $0.split(separator: "\t") }
            #expect(lines.map { String($0[0]) } == ids && lines.allSatisfy { $0.count == 6 })
            #expect(
                lines.first { $0[1] == "shipping" }?[2] == "revoked"
                    && lines.first { $0[1] == "mobile" }?[2] == "active")
            let page = try stage.key("list", "--json", "--limit", "1", "--after", ids[0])
            #expect(page.output.contains("{\"id\":\"\(ids[1])\",\"subject\""), "\(page)")
            let array = try JSONSerialization.jsonObject(with: Data(try stage.key("list", "--json").output.utf8))
            let objects = try #require(array as? [[String: Any]])
            #expect(objects.map { $0["id"] as? String } == ids)
            #expect(objects.allSatisfy { $0["key"] == nil && $0["sha256"] == nil && $0["last_used_at"] == nil })
            #expect(try stage.status(keys[0]) == 200)
            // The end of a gateway stores the uses that it noted.
            try stage.gateway.stop()
            let after = try stage.key("list", "--json").output
            #expect(after.components(separatedBy: "last_used_at").count == 2, "\(after)")
        }
    }

    @Test func `a rotation replaces the secret, after its grace period or immediately`() throws {
        try KeyStage.run { stage in
            let old = try stage.create("--subject", "billing")
            #expect(try stage.status(old) == 200)
            let rotated = try stage.key("rotate", keyID(old), "--grace", "3s")
            #expect(rotated.ending == .exited(0) && rotated.errorOutput.contains("valid until"), "\(rotated)")
            let new = rotated.output.trimmingCharacters(in: .newlines)
            #expect(new != old && keyID(new) == keyID(old))
            try waitUntil("the new key is known", within: .seconds(5)) { try stage.status(new) == 200 }
            #expect(try stage.status(old) == 200)
            try waitUntil("the old key is void", within: .seconds(8)) { try stage.status(old) == 401 }
            try stage.waitForReason("api_key.replaced")
            #expect(try stage.status(new) == 200)
            let last = try stage.key("rotate", keyID(old)).output.trimmingCharacters(in: .newlines)
            try waitUntil("the second key is void", within: .seconds(5)) { try stage.status(new) == 401 }
            #expect(try stage.status(last) == 200)
        }
    }

    @Test func `a key ends when it expires`() throws {
        try KeyStage.run { stage in
            let key = try stage.create("--subject", "billing", "--expires", "3s")
            #expect(try stage.status(key) == 200)
            try waitUntil("the key has expired", within: .seconds(8)) { try stage.status(key) == 401 }
            try stage.waitForReason("api_key.expired")
            let rotated = try stage.key("rotate", keyID(key))
            #expect(rotated.ending == .exited(64) && rotated.errorOutput.contains("key.not_active"), "\(rotated)")
        }
    }

    @Test(arguments: ["", " --json"])
    func `a key that could not be printed lets no one in, and the one before goes on`(option: String) throws {
        try KeyStage.run { stage in
            let key = try stage.create("--subject", "billing")
            let config = stage.gateway.folder.file("config.yaml")
            func full(_ action: String) throws -> CommandResult {
                let line = "exec \"$0\" key \(action) --config \"$1\"\(option) > /dev/full"
                return try run("/bin/sh", ["-c", line, try Executable.martlet(), config])
            }
            let rotated = try full("rotate \(keyID(key))")
            #expect(rotated.ending == .exited(70), "\(rotated)")
            #expect(
                rotated.errorOutput.hasPrefix(
                    "martlet key: the new key could not be printed, and the old key \(keyID(key)) is valid again\n"))
            let created = try full("create --subject shipping")
            #expect(created.ending == .exited(70) && created.errorOutput.contains(" is revoked\n"), "\(created)")
            let states = try stage.key("list").output.split(separator: "\n").map { $0.split(separator: "\t") }
            #expect(states.count == 2 && states.first { $0[1] == "shipping" }?[2] == "revoked", "\(states)")
            // A gateway hears of both changes within a second.
            pause(.milliseconds(1500))
            try waitUntil("the old key is accepted") { try stage.status(key) == 200 }
        }
    }

    @Test func `what cannot be done is exit 64 and says why`() throws {
        try KeyStage.run { stage in
            let rows: [([String], String)] = [
                (["create"], "--subject is required"), (["create", "--subject", ""], "--subject must"),
                (["create", "--subject", "a\u{7}b"], "--subject must"),
                (["create", "--subject", "a", "--claims", "role"], "NAME=VALUE"),
                (["create", "--subject", "a", "--claims", "sub=x"], "cannot be set"),
                (["create", "--subject", "a", "--claims", "scope=x"], "set by the gateway"),
                (["create", "--subject", "a", "--claims", "x=1", "--claims", "x=2"], "more than once"),
                (["create", "--subject", "a", "--scope", "a,,b"], "--scope requires"),
                (["create", "--subject", "a", "--expires", "0s"], "--expires requires"),
                (["create", "--subject", "a", "--expires", "soon"], "--expires requires"),
                (["create", "--subject", "usr_none", "--account"], "key.unknown_account"),
                (["create", "--subject", "a", "--grace", "1s"], "--grace is for rotate alone"),
                (["create", "id", "--subject", "a"], "takes no arguments"), (["revoke"], "requires ID: the key's id"),
                (["revoke", "0011223344556677"], "key.unknown"), (["rotate", "0011223344556677"], "key.unknown"),
                (["revoke", "x", "--account"], "--account is for create alone"), (["list", "x"], "takes no arguments"),
                (["list", "--limit", "0"], "--limit requires"), (["lst"], "expected one of"), ([], "expected one of"),
                (["list", "--provider", "other"], "key.no_provider"),
            ]
            for (arguments, reason) in rows {
                let result = try stage.command(["key"] + arguments)
                #expect(result.ending == .exited(64) && result.output.isEmpty, "\(arguments): \(result)")
                #expect(result.errorOutput.contains(reason), "\(arguments): \(result)")
            }
            #expect(try stage.key("list").output.isEmpty)
        }
    }

    /// Runs `martlet key` over a configuration that no gateway serves.
    private func key(
        _ folder: TemporaryFolder, accounts: String, providers: String, _ arguments: [String]
    ) throws -> CommandResult {
        var configuration = GatewayConfig(endpoints: ["http://127.0.0.1:9"], providers: providers)
        configuration.more = accounts.isEmpty ? "" : "accounts: { url: \"\(accounts)\" }\n"
        try folder.write(configuration.text, to: "config.yaml")
        return try run(
            try Executable.martlet(), ["key"] + arguments + ["--config", folder.file("config.yaml")])
    }

    @Test func `a configuration without keys is exit 78, and several providers have to be named`() throws {
        let folder = try TemporaryFolder()
        let none = try key(folder, accounts: "sqlite:a.db", providers: "", ["list"])
        #expect(none.ending == .exited(78) && none.errorOutput.contains("key.no_provider"), "\(none)")
        let homeless = try key(folder, accounts: "", providers: "p: { kind: api_key }", ["list"])
        #expect(homeless.ending == .exited(78) && homeless.errorOutput.contains("keys_file"), "\(homeless)")
        let both = "one: { kind: api_key }\ntwo: { kind: api_key }"
        let two = try key(folder, accounts: "sqlite:a.db", providers: both, ["create", "--subject", "a"])
        #expect(two.ending == .exited(64) && two.errorOutput.contains("'one', 'two'"), "\(two)")
        let named = ["create", "--subject", "a", "--provider", "two"]
        #expect(try key(folder, accounts: "sqlite:a.db", providers: both, named).ending == .exited(0))
        let other = try key(folder, accounts: "sqlite:a.db", providers: both, ["list", "--provider", "one"])
        #expect(other.ending == .exited(0) && other.output.isEmpty, "\(other)")
    }

    @Test func `an unavailable store is exit 69`() throws {
        let folder = try TemporaryFolder()
        for url in ["sqlite:/nonexistent/a.db", "postgresql://127.0.0.1:\(try refusedPort())/martlet"] {
            for arguments in [["list"], ["create", "--subject", "a"], ["revoke", "0011223344556677"]] {
                let result = try key(folder, accounts: url, providers: "p: { kind: api_key }", arguments)
                #expect(result.ending == .exited(69) && result.output.isEmpty, "\(result)")
            }
        }
    }

    @Test func `keys in a file need no account store, and changes of the file are noticed`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        let configuration = GatewayConfig(
            endpoints: [upstream.url], providers: "partners: { kind: api_key, keys_file: keys.jsonl }",
            routes: KeyStage.routes)
        try withMartlet(configuration.text) { gateway in
            let stage = KeyStage(gateways: [gateway], upstream: upstream)
            let key = try stage.create("--subject", "billing", "--claims", "role=partner")
            let path = gateway.folder.file("keys.jsonl")
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
            try waitUntil("the key is known", within: .seconds(5)) { try stage.status(key) == 200 }
            #expect(upstream.requests.last?["X-Auth-Subject"] == "partners:billing")
            #expect(try stage.key("revoke", keyID(key)).ending == .exited(0))
            let started = ContinuousClock.now
            while try stage.status(key) != 401 {
                guard started.duration(to: .now) < .seconds(4) else { throw TestFailure("the key is still accepted") }
            }
            let other = try stage.key("create", "--subject", "usr_x", "--account")
            #expect(other.ending == .exited(78) && other.errorOutput.contains("key.no_accounts"), "\(other)")
            let text = try String(contentsOfFile: path, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
            let exposed = try stage.key("list")
            #expect(exposed.ending == .exited(78) && exposed.errorOutput.contains("chmod 600"), "\(exposed)")
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            try gateway.folder.write(text + "{\n", to: "keys.jsonl")
            let broken = try stage.key("list")
            #expect(broken.ending == .exited(78) && broken.errorOutput.contains("line 2"), "\(broken)")
            try waitUntil("the gateway warns") { gateway.everything.contains("keeping the previous keys") }
        }
    }
}
