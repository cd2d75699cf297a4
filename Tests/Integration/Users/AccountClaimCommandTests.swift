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

/// Everything needs a caller, and one path a member of the staff.
private let routes = """
    - name: staff
      match: { path: /staff/** }
      auth: { providers: [apple, password] }
      authorize: [{ claim: role, equals: staff }]
      headers: { set: { X-Role: { claim: role }, X-Teams: { claim: teams, join: "+", default: none } } }
      upstream: api
    - { name: all, match: { path: /** }, auth: { providers: [apple, password] }, upstream: api }
    """

/// A PATCH of an account's claims at an admin listener.
private func change(
    _ subject: String, _ body: String, at gateway: Gateway, type: String = "application/merge-patch+json"
) throws -> HTTPMessage {
    try HTTPClient(to: gateway.operators).exchange(
        "PATCH", "/subjects/\(subject)/claims", [("Content-Type", type)], body: Array(body.utf8))
}

@Suite(.timeLimit(.minutes(3))) struct AccountClaimCommandTests {
    @Test func `who is staff is let in within a second at every instance, and out again`() throws {
        let redis = try RedisServer()
        try withSignIn(server: "workers: 2", routes: routes, more: "store: { url: \"\(redis.url)\" }") { stage in
            let text = try String(contentsOfFile: stage.gateway.folder.file("config.yaml"), encoding: .utf8)
            let second = try Gateway(text, in: stage.gateway.folder)
            let tokens = try stage.passwordLogin()
            let basic = Data("alice:\(SignInStage.password)".utf8).base64EncodedString()
            /// The statuses with a session and a password at both instances, on connections that have been used.
            let clients = try [stage.gateway, second].flatMap { gateway in
                try [bearer(tokens.access), [("Authorization", "Basic \(basic)")]].map {
                    (client: try gateway.connect(), fields: $0)
                }
            }
            func statuses() throws -> [Int] {
                try clients.map { try $0.client.exchange("GET", "/staff/list", $0.fields).status }
            }
            #expect(try statuses() == [403, 403, 403, 403])

            let set = try martlet(["account", "set", tokens.subject, "role=staff", "teams=a,b"], at: stage)
            #expect(
                set.ending == .exited(0) && set.output.contains("claims\t" + #"{"role":"staff","teams":["a","b"]}"#),
                "\(set)")
            try waitUntil("they are let in", within: .seconds(1)) { try statuses() == [200, 200, 200, 200] }
            let seen = stage.upstream.requests.last
            #expect(seen?["X-Role"] == "staff" && seen?["X-Teams"] == "a+b")
            let session = try stage.send("GET", "/auth/session", bearer: tokens.access)
            #expect((session.object["claims"] as? [String: Any])?["role"] as? String == "staff")

            let unset = try martlet(["account", "unset", tokens.subject, "role", "--json"], at: stage)
            #expect(unset.output.contains(#""claims":{"teams":["a","b"]}"#), "\(unset)")
            try waitUntil("they are out", within: .seconds(1)) { try statuses() == [403, 403, 403, 403] }
            // The session itself goes on, at both.
            #expect(try clients[0].client.exchange("GET", "/who", bearer(tokens.access)).status == 200)
            #expect(try clients[2].client.exchange("GET", "/who", bearer(tokens.access)).status == 200)
            try second.stop()
        }
    }

    @Test func `later sessions and refreshed tokens have the claims, and only credentials of the account`() throws {
        let redis = try RedisServer()
        try withSignIn(
            users: ["alice", "bob"], routes: routes, more: "store: { url: \"\(redis.url)\" }"
        ) { stage in
            let first = try stage.passwordLogin()
            let other = try stage.passwordLogin("bob")
            #expect(try martlet(["account", "set", first.subject, "role=staff"], at: stage).ending == .exited(0))
            let second = try stage.passwordLogin()
            let refreshed = try Tokens(stage.post("/auth/refresh", ["refresh_token": first.refresh]))
            for token in [first.access, second.access, refreshed.access] {
                #expect(try stage.gateway.get("/staff/x", bearer(token)).status == 200)
            }
            #expect(try stage.gateway.get("/staff/x", bearer(other.access)).status == 403)

            let listed = try martlet(["account", "list", "--claim", "role=staff"], at: stage)
            #expect(listed.output.hasPrefix("\(first.subject)\tactive\t") && !listed.output.contains(other.subject))
            let one = try martlet(["account", "list", "--limit", "1", "--json"], at: stage)
            let subjects = [first.subject, other.subject].sorted()
            #expect(one.output.contains(subjects[0]) && !one.output.contains(subjects[1]))
            let next = try martlet(["account", "list", "--after", subjects[0]], at: stage)
            #expect(next.output.hasPrefix(subjects[1]) && !next.output.contains(subjects[0]))
        }
    }

    @Test func `without the store nothing changes, and a change that it missed comes with a refresh`() throws {
        let redis = try RedisServer()
        try withSignIn(routes: routes, more: "store: { url: \"\(redis.url)\" }") { stage in
            let tokens = try stage.passwordLogin()
            #expect(try martlet(["account", "set", tokens.subject, "teams=a"], at: stage).ending == .exited(0))
            try redis.stop()
            let set = try martlet(["account", "set", tokens.subject, "role=staff"], at: stage)
            #expect(set.ending == .exited(69) && set.errorOutput.contains("nothing was changed"), "\(set)")
            try waitUntil("the gateway notices") { try change(tokens.subject, "{}", at: stage.gateway).status == 503 }
            #expect(try !martlet(["account", "show", tokens.subject], at: stage).output.contains("staff"))
        }
    }

    @Test func `the admin listener changes claims too, with the sessions in memory`() throws {
        try withSignIn(server: "workers: 4", routes: routes) { stage in
            let tokens = try stage.passwordLogin()
            let client = try stage.gateway.connect()
            #expect(try client.exchange("GET", "/staff/x", bearer(tokens.access)).status == 403)
            let set = try martlet(["account", "set", tokens.subject, "role=staff"], at: stage)
            #expect(set.ending == .exited(78) && set.errorOutput.contains("PATCH /subjects/\(tokens.subject)/claims"))

            let changed = try change(tokens.subject, #"{"role":"staff","level":3}"#, at: stage.gateway)
            #expect(changed.status == 200 && changed["Content-Type"] == "application/json", "\(changed)")
            #expect(
                changed.text == #"{"subject":"\#(tokens.subject)","claims":{"role":"staff","level":3},"identities":{}}"#
                    + "\n")
            // The response says that every loop of this instance applies them.
            #expect(try client.exchange("GET", "/staff/x", bearer(tokens.access)).status == 200)
            let shown = try stage.gateway.askAdmin("/subjects/\(tokens.subject)/claims")
            #expect(shown.text == changed.text)
            #expect(try change(tokens.subject, #"{"role":null}"#, at: stage.gateway).status == 200)
            #expect(try client.exchange("GET", "/staff/x", bearer(tokens.access)).status == 403)
            try waitUntil("it is logged") {
                stage.gateway.log.contains { $0["event"] == "claims of an account changed" && $0["claims"] == "role" }
            }
        }
    }

    @Test func `the admin listener names what is wrong`() throws {
        try withSignIn { stage in
            let tokens = try stage.passwordLogin()
            let bad = try change(tokens.subject, #"{"sub":"x","a/b c":1,"role":{}}"#, at: stage.gateway)
            expectRejection(bad, 400, "request_invalid")
            let errors = bad.object["errors"] as? [[String: String]] ?? []
            #expect(errors.map { $0["pointer"] } == ["/sub", "/a~1b c", "/role"])
            #expect(
                errors.map { $0["code"] }
                    == ["claims.name_reserved", "claims.name_invalid", "claims.value_invalid"])
            for body in ["", "[]", "{", "1"] {
                expectRejection(try change(tokens.subject, body, at: stage.gateway), 400, "request_invalid")
            }
            let large = #"{"role":""# + String(repeating: "x", count: 20_000) + #""}"#
            expectRejection(try change(tokens.subject, large, at: stage.gateway), 413, "request_too_large")
            let text = try change(tokens.subject, "{}", at: stage.gateway, type: "text/plain")
            expectRejection(text, 403, "cross_site")
            expectRejection(
                try change(tokens.subject, "{}", at: stage.gateway, type: "text/json"), 415, "request_invalid")
            expectRejection(try change("usr_nobody", "{}", at: stage.gateway), 404, "not_found")
            expectRejection(try stage.gateway.askAdmin("/subjects/usr_nobody/claims"), 404, "not_found")
            let deletion = try HTTPClient(to: stage.gateway.operators).exchange("DELETE", "/subjects/x/claims")
            expectRejection(deletion, 405, "method_not_allowed")
            #expect(deletion["Allow"] == "GET, HEAD, PATCH")
        }
        try withSignIn(accounts: "") { stage in
            expectRejection(try change("apple:001", "{}", at: stage.gateway), 404, "not_found")
        }
    }

    @Test func `a tunnel that needs a claim ends with it, and others go on`() throws {
        let redis = try RedisServer()
        try withSignIn(
            routes: routes, more: "store: { url: \"\(redis.url)\" }", script: EchoScript().script
        ) { stage in
            let tokens = try stage.passwordLogin()
            let claims = ["account", "set", tokens.subject, "role=staff"]
            #expect(try martlet(claims, at: stage).ending == .exited(0))
            let staff = try stage.gateway.webSocket("/staff/ws", bearer(tokens.access))
            let kept = try stage.gateway.webSocket("/ws", bearer(tokens.access))
            try staff.expectEcho("hello")
            pause(.milliseconds(900))
            // A change that the route does not mind ends nothing.
            #expect(try martlet(["account", "set", tokens.subject, "teams=a"], at: stage).ending == .exited(0))
            pause(.milliseconds(600))
            try staff.expectEcho("still here")
            #expect(try martlet(["account", "unset", tokens.subject, "role"], at: stage).ending == .exited(0))
            let start = Stopwatch()
            try staff.expectClose(4401, "session revoked")
            #expect(start.undisturbed < .seconds(1))
            try kept.expectEcho("still here")
        }
    }

    @Test func `the configuration makes the first admin, until an operator decides otherwise`() throws {
        let accounts = """
            accounts:
              url: "sqlite:accounts.db"
              bootstrap: [{ provider: password, provider_subject: alice, claims: { role: staff } }]
              claims_from: [{ provider: apple, claim: email, as: contact }]
            """
        try withSignIn(users: ["alice", "bob"], accounts: accounts, routes: routes) { stage in
            let basic = Data("alice:\(SignInStage.password)".utf8).base64EncodedString()
            #expect(try stage.gateway.get("/staff/x", [("Authorization", "Basic \(basic)")]).status == 200)
            let (alice, bob) = (try stage.passwordLogin(), try stage.passwordLogin("bob"))
            #expect(try stage.gateway.get("/staff/x", bearer(alice.access)).status == 200)
            #expect(try stage.gateway.get("/staff/x", bearer(bob.access)).status == 403)
            #expect(try change(alice.subject, #"{"role":null}"#, at: stage.gateway).status == 200)
            for token in [alice.access, try stage.passwordLogin().access] {
                #expect(try stage.gateway.get("/staff/x", bearer(token)).status == 403)
            }
            let link = ["identity_token": try stage.apple.token()]
            #expect(try stage.post("/auth/link/apple", bearer: bob.access, link).status == 204)
            #expect(try stage.appleLogin().subject == bob.subject)
            let shown = try stage.send("GET", "/auth/session", bearer: bob.access)
            let contact = (shown.object["claims"] as? [String: Any])?["contact"] as? String
            #expect(contact?.contains("@") == true, "\(shown)")
        }
    }

    @Test func `what makes no sense is exit 64`() throws {
        try withSignIn { stage in
            for words in [
                ["account", "set"], ["account", "set", "x"], ["account", "set", "x", "role"],
                ["account", "set", "x", "sub=y"], ["account", "unset", "x"], ["account", "unset", "x", "a b"],
                ["account", "show", "x", "y"], ["account", "list", "--claim", "role"],
                ["account", "list", "--limit", "0"], ["account", "show", "x", "--claim", "a=b"],
                ["account", "set", "x", "a=1", "a=2"],
            ] {
                let result = try martlet(words, at: stage)
                #expect(result.ending == .exited(64), "\(words): \(result)")
            }
        }
    }
}
