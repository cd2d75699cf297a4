import Foundation
import MartletTesting
import Testing

/// `martlet user` with the configuration of a stage.
private func user(_ arguments: String..., at stage: SignInStage) throws -> CommandResult {
    try run(
        try Executable.martlet(), ["user"] + arguments + ["--config", stage.gateway.folder.file("config.yaml")])
}

@Suite(.timeLimit(.minutes(2))) struct UserUnlockTests {
    @Test func `a throttled user is let in after unlock, at networks known and unknown`() throws {
        let redis = try RedisServer()
        let throttle = "throttle: { attempts: 2, window: 2m, ban: 5m }"
        try withSignIn(password: throttle, more: "store: { url: \"\(redis.url)\" }") { stage in
            for isKnown in [false, true] {
                // A login makes the network known.
                if isKnown { _ = try stage.passwordLogin() }
                let wrong = ["username": "alice", "password": "not the password"]
                for _ in 0..<2 { #expect(try stage.post("/auth/login/password", wrong).status == 401) }
                let right = ["username": "alice", "password": SignInStage.password]
                #expect(try stage.post("/auth/login/password", right).status == 429)
                let unlocked = try user("unlock", "ALICE", "--json", at: stage)
                #expect(
                    unlocked.output.hasPrefix(#"{"name":"alice","action":"unlocked","lock":{"until":"#), "\(unlocked)")
                #expect(try stage.post("/auth/login/password", right).status == 200, "\(isKnown)")
            }
        }
    }

    @Test func `unlock without a shared store is exit 78`() throws {
        try withSignIn { stage in
            let result = try user("unlock", "alice", at: stage)
            #expect(result.ending == .exited(78) && result.errorOutput.contains("user.store_not_shared"), "\(result)")
        }
    }

    @Test func `a deleted user is out within a second, and a new one of this name is someone else`() throws {
        let redis = try RedisServer()
        try withSignIn(server: "workers: 2", more: "store: { url: \"\(redis.url)\" }") { stage in
            let tokens = try stage.passwordLogin()
            let apple = ["identity_token": try stage.apple.token()]
            #expect(try stage.post("/auth/link/apple", bearer: tokens.access, apple).status == 204)
            let basic = Data("alice:\(SignInStage.password)".utf8).base64EncodedString()
            #expect(try stage.gateway.get("/who", [("Authorization", "Basic \(basic)")]).status == 200)
            let deleted = try user("delete", "alice", at: stage)
            #expect(deleted.output == "user 'alice' deleted\nall sessions of the user ended\n", "\(deleted)")
            try waitUntil("they are out", within: .seconds(1)) {
                try stage.status(with: tokens.access) == 401
                    && stage.gateway.get("/who", [("Authorization", "Basic \(basic)")]).status == 401
            }
            let added = try run(
                try Executable.martlet(),
                ["user", "add", "alice", "--config", stage.gateway.folder.file("config.yaml")],
                input: "\(SignInStage.password)\n")
            #expect(added.ending == .exited(0))
            #expect(try stage.passwordLogin().subject != tokens.subject)
            #expect(try stage.appleLogin().subject == tokens.subject)
            let shown = try user("show", "alice", "--json", at: stage)
            #expect(shown.output.contains(#""state":"active","subject":"usr_"#), "\(shown)")
            #expect(try user("list", "--limit", "1", "--json", at: stage).output.hasPrefix("[\n{\"name\":\"alice\""))
        }
    }
}
