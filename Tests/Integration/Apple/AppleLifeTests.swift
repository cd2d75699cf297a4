import Foundation
import MartletCore
import MartletTesting
import Testing

/// Sign in with Apple after the login, against the simulated Apple.
@Suite(.timeLimit(.minutes(3))) struct `Apple's whole life` {
    private static func identities(_ token: String, at gateway: Gateway) throws -> [[String: Any]] {
        let response = try gateway.get("/auth/account", [("Authorization", "Bearer \(token)")])
        guard response.status == 200 else { throw TestFailure("\(response)") }
        return response.object["identities"] as? [[String: Any]] ?? []
    }

    @Test func `a login exchanges its code once, and the identity is authorized`() throws {
        let stage = try AppleLifeStage()
        let gateway = try stage.gateway()
        let credential = try stage.credential(1)
        let login = try AppleLifeStage.post("/auth/login/apple", credential, at: gateway)
        let token = try stage.token(of: login)
        for _ in 0..<3 {
            let again = try AppleLifeStage.post("/auth/login/apple", credential, at: gateway)
            #expect(again.status == 200 && again.object["access_token"] as? String == token)
        }
        #expect(try stage.requests().count { $0["path"] as? String == "/auth/token" } == 1)
        let identities = try Self.identities(token, at: gateway)
        #expect(identities.map { $0["provider"] as? String } == ["apple"])
        #expect(identities.map { $0["state"] as? String } == ["authorized"])
        #expect(abs((identities.first?["checked_at"] as? Int ?? 0) - unixNow()) < 60)
        let session = try gateway.get("/auth/session", [("Authorization", "Bearer \(token)")])
        #expect((session.object["identities"] as? [[String: Any]])?.count == 1)
        try gateway.stop()
    }

    @Test func `each failure at Apple has its status, and the code is never sent again`() throws {
        let stage = try AppleLifeStage()
        let gateway = try stage.gateway()
        let failures: [([String: Any], Int)] = [
            (["error": "invalid_grant"], 401), (["error": "invalid_client"], 503), (["error": "invalid_request"], 503),
            (["error": "unauthorized_client"], 503), (["error": "unsupported_grant_type"], 503),
            (["error": "invalid_scope"], 503), (["status": 429], 503), (["status": 500, "body": "<html>"], 503),
            (["close": true], 503), (["close": true, "processed": true], 503),
            (["status": 200, "body": "<html>"], 503),
        ]
        for (failure, status) in failures {
            try stage.order("/simulator/trouble", failure.merging(["path": "/auth/token"]) { first, _ in first })
            let credential = try stage.credential(2)
            let before = try stage.requests().count
            let response = try AppleLifeStage.post("/auth/login/apple", credential, at: gateway)
            #expect(response.status == status, "\(failure): \(response)")
            if status == 503 { #expect(response["Retry-After"] != nil) }
            #expect(try AppleLifeStage.post("/auth/login/apple", credential, at: gateway).status == status)
            #expect(try stage.requests().count == before + 1, "\(failure)")
        }
        #expect(try stage.login(2, at: gateway).status == 200, "the app starts over")
        try gateway.stop()
    }

    @Test func `a notification ends the sessions at two instances, once`() throws {
        let stage = try AppleLifeStage(hasRedis: true)
        let gateways = try [stage.gateway(), stage.gateway()]
        let login = try stage.login(1, at: gateways[0])
        let token = try stage.token(of: login)
        for gateway in gateways { #expect(try AppleLifeStage.status(token, at: gateway) == 200) }
        let other = try stage.token(of: try stage.login(2, at: gateways[1]))
        let payload = try stage.notification("consent-revoked", of: 1)
        #expect(try stage.notify(payload, at: gateways[1]).member("outcome") == "applied")
        #expect(try AppleLifeStage.status(token, at: gateways[1]) == 401, "when Apple has its response")
        try waitUntil("the other instance refuses, too", within: .seconds(1)) {
            try AppleLifeStage.status(token, at: gateways[0]) == 401
        }
        for index in 0..<10 {
            let response = try stage.notify(payload, at: gateways[index % 2])
            #expect(response.status == 200 && response.member("outcome") == "repeated")
        }
        for gateway in gateways { #expect(try AppleLifeStage.status(other, at: gateway) == 200) }
        let subject = try #require(login.member("subject"))
        #expect(try stage.event("identity.revoked", of: subject).data["provider"] as? String == "apple")
        let ended = try stage.event("session.revoked", of: subject)
        #expect(ended.data["reason"] as? String == "apple_consent_revoked")
        #expect(ended.data["session_id"] as? String == login.member("session_id"))

        // A new login brings the identity back, and what happened before it does not matter any more.
        let again = try stage.token(of: try stage.login(1, at: gateways[0]))
        let old = try stage.notification(
            "consent-revoked", of: 1, at: Int64(Date().timeIntervalSince1970 * 1000) - 60_000)
        #expect(try stage.notify(old, at: gateways[0]).member("outcome") == "outdated")
        #expect(try AppleLifeStage.status(again, at: gateways[1]) == 200)
        for gateway in gateways { try gateway.stop() }
    }

    @Test func `another address is an event, without the address`() throws {
        let stage = try AppleLifeStage()
        let gateway = try stage.gateway()
        let subject = try #require(try stage.login(1, at: gateway).member("subject"))
        for address in ["ada@example.com", "Ada@Example.com", "new@example.com"] {
            let token = try stage.order(
                "/simulator/token",
                ["audience": AppleLifeStage.app, "subject": AppleLifeStage.subject(1), "email": address])
            let credential = ["identity_token": token.member("identity_token") ?? ""]
            #expect(try AppleLifeStage.post("/auth/login/apple", credential, at: gateway).status == 200)
        }
        try waitUntil("both changes are events") { stage.events.count { $0.type == "email.changed" } >= 2 }
        let events = stage.events.filter { $0.type == "email.changed" }
        #expect(events.map(\.subject) == [subject, subject])
        #expect(events.allSatisfy { $0.data.count == 1 && $0.data["provider"] as? String == "apple" })
        try gateway.stop()
    }

    @Test func `the relay of e-mail and the state are claims of live sessions, at two instances`() throws {
        let stage = try AppleLifeStage(hasRedis: true)
        let routes = """
            - name: api
              match: { path: /** }
              auth: { providers: [apple] }
              authorize: [{ claim: credential_state, equals: authorized }]
              headers:
                set:
                  X-Relay: { claim: email_forwarding, default: none }
                  X-State: { claim: credential_state, default: none }
              upstream: api
            """
        let gateways = try [stage.gateway(routes: routes), stage.gateway(routes: routes)]
        let token = try stage.token(of: try stage.login(1, at: gateways[0]))
        func seen(_ gateway: Gateway) throws -> String {
            let response = try gateway.get("/resource", [("Authorization", "Bearer \(token)")])
            guard response.status == 200 else { throw TestFailure("\(response)") }
            let fields = response.object["headers"] as? [String: Any] ?? [:]
            return "\(fields["x-relay"] ?? "none") \(fields["x-state"] ?? "none")"
        }
        for gateway in gateways { #expect(try seen(gateway) == "none authorized") }
        for (type, value) in [("email-disabled", "false"), ("email-enabled", "true")] {
            let payload = try stage.notification(type, of: 1)
            #expect(try stage.notify(payload, at: gateways[1]).member("outcome") == "applied")
            #expect(try seen(gateways[1]) == "\(value) authorized", "when Apple has its response")
            try waitUntil("the other instance applies it, too", within: .seconds(1)) {
                try seen(gateways[0]) == "\(value) authorized"
            }
        }
        let again = try stage.token(of: try stage.login(1, at: gateways[0]))
        let shown = try gateways[0].get("/auth/session", [("Authorization", "Bearer \(again)")])
        #expect((shown.object["claims"] as? [String: Any])?["email_forwarding"] as? Bool == true, "\(shown)")
        for gateway in gateways { try gateway.stop() }
    }

    @Test func `hostile notifications are 400 and change nothing`() throws {
        let stage = try AppleLifeStage()
        let gateway = try stage.gateway()
        let token = try stage.token(of: try stage.login(1, at: gateway))
        let forged = try stage.notification("consent-revoked", of: 1, forged: true)
        let fine = try stage.notification("consent-revoked", of: 1)
        let bad: [String] = [
            forged, "", "a.b.c", String(repeating: "a", count: 60_000), fine + "x", fine + ".x",
            try stage.credential(1)["identity_token"] ?? "",
            try stage.notification("consent-revoked", of: 1, at: 5),
            try stage.notification("consent-revoked", of: 1, at: .max),
        ]
        for payload in bad { #expect(try stage.notify(payload, at: gateway).status == 400, "\(payload.prefix(40))") }
        let path = "/auth/apple/notifications"
        let json = [("Content-Type", "application/json")]
        for body in ["", "[]", "{}", "{\"payload\":7}", "{\"payload\":", "null"] {
            #expect(try gateway.exchange("POST", path, json, body: Array(body.utf8)).status == 400, "\(body)")
        }
        #expect(
            try gateway.exchange("POST", path, json, body: [UInt8](repeating: 0x20, count: 70_000)).status == 413)
        #expect(try gateway.get(path).status == 405)
        #expect(try gateway.exchange("POST", "/auth/other/notifications", json, body: Array("{}".utf8)).status == 404)
        #expect(try AppleLifeStage.status(token, at: gateway) == 200)
        // The same as a login is a credential that is rejected.
        #expect(try AppleLifeStage.post("/auth/login/apple", ["identity_token": fine], at: gateway).status == 401)
        let form = [("Content-Type", "application/x-www-form-urlencoded")]
        #expect(try gateway.exchange("POST", path, form, body: Array("payload=\(fine)".utf8)).status == 200)
        #expect(try AppleLifeStage.status(token, at: gateway) == 401)
        try gateway.stop()
    }

    @Test func `without the session store a notification is filed, and sessions end when it is back`() throws {
        let stage = try AppleLifeStage(hasRedis: true)
        let gateway = try stage.gateway()
        let token = try stage.token(of: try stage.login(1, at: gateway))
        let redis = try #require(stage.redis)
        redis.freeze(true)
        let payload = try stage.notification("consent-revoked", of: 1)
        #expect(try stage.notify(payload, at: gateway).status == 200)
        redis.freeze(false)
        try waitUntil("the session ends", within: .seconds(20)) {
            try AppleLifeStage.status(token, at: gateway) == 401
        }
        try gateway.stop()
    }

    @Test func `a deletion revokes Apple's tokens and says so`() throws {
        let stage = try AppleLifeStage()
        let gateway = try stage.gateway()
        let login = try stage.login(1, at: gateway)
        let token = try stage.token(of: login)
        let subject = try #require(login.member("subject"))
        #expect(try AppleLifeStage.delete(token, at: gateway).status == 202)
        #expect(try AppleLifeStage.status(token, at: gateway) == 401)
        let event = try stage.event("account.deleted", of: subject)
        #expect(event.data["revoked_at_apple"] as? Bool == true && event.data["reason"] as? String == "user")
        let revocations = try stage.requests().filter { $0["path"] as? String == "/auth/revoke" }
        #expect(revocations.count == 1)
        #expect(
            stage.events.filter { $0.subject == subject }.map(\.type) == [
                "account.created", "session.revoked", "account.deleted",
            ])
        let again = try stage.login(1, at: gateway)
        #expect(again.object["new_account"] as? Bool == true && again.member("subject") != subject)
        try gateway.stop()
    }

    @Test(arguments: [false, true])
    func `an operator deletes an account of a running gateway`(hasRedis: Bool) throws {
        let stage = try AppleLifeStage(hasRedis: hasRedis)
        let gateway = try stage.gateway()
        let login = try stage.login(1, at: gateway)
        let token = try stage.token(of: login)
        let subject = try #require(login.member("subject"))
        func martlet(_ arguments: String...) throws -> CommandResult {
            try run(
                try Executable.martlet(),
                ["account"] + arguments + ["--config", stage.folder.file("config.yaml")])
        }
        let deleted = try martlet("delete", subject, "--json")
        let object = try JSONSerialization.jsonObject(with: Data(deleted.output.utf8)) as? [String: Any] ?? [:]
        #expect(deleted.ending == .exited(0) && object["deletion_reason"] as? String == "operator", "\(deleted)")
        #expect(["being_deleted", "deleted"].contains(object["state"] as? String), "\(deleted)")
        try waitUntil("the session is over", within: .seconds(hasRedis ? 1 : 2)) {
            try AppleLifeStage.status(token, at: gateway) == 401
        }
        let event = try stage.event("account.deleted", of: subject)
        #expect(event.data["revoked_at_apple"] as? Bool == true && event.data["reason"] as? String == "operator")
        #expect(try stage.requests().filter { $0["path"] as? String == "/auth/revoke" }.count == 1)
        #expect(
            stage.events.filter { $0.subject == subject }.map(\.type) == [
                "account.created", "session.revoked", "account.deleted",
            ])
        #expect(try martlet("show", subject).output.hasPrefix("\(subject)\tdeleted\t"))
        for unknown in [subject, "usr_unknown"] {
            let result = try martlet("delete", unknown)
            #expect(result.ending == .exited(64), "\(result)")
        }
        let again = try stage.login(1, at: gateway)
        #expect(again.object["new_account"] as? Bool == true && again.member("subject") != subject)
        try gateway.stop()
    }

    @Test func `an operator's deletion waits for a gateway, and says so`() throws {
        let stage = try AppleLifeStage()
        var gateway = try stage.gateway(accounts: "deletion: { grace: 1s }")
        let login = try stage.login(1, at: gateway)
        let subject = try #require(login.member("subject"))
        try gateway.stop()
        let arguments = [subject, "--config", stage.folder.file("config.yaml")]
        for _ in 0..<2 {
            let deleted = try run(try Executable.martlet(), ["account", "delete"] + arguments)
            #expect(deleted.ending == .exited(0), "\(deleted)")
            #expect(deleted.output.hasPrefix("account \(subject) is being deleted\n"), "\(deleted)")
        }
        let shown = try run(try Executable.martlet(), ["account", "show"] + arguments)
        #expect(shown.output.hasPrefix("\(subject)\tbeing_deleted\t"), "\(shown)")
        gateway = try stage.gateway(accounts: "deletion: { grace: 1s }")
        #expect(try stage.event("account.deleted", of: subject).data["reason"] as? String == "operator")
        try gateway.stop()
    }

    @Test func `a deletion without a refresh token says so, too`() throws {
        let stage = try AppleLifeStage()
        let gateway = try stage.gateway()
        let login = try stage.login(1, at: gateway, hasCode: false)
        let subject = try #require(login.member("subject"))
        #expect(try AppleLifeStage.delete(try stage.token(of: login), at: gateway).status == 202)
        #expect(try stage.event("account.deleted", of: subject).data["revoked_at_apple"] as? Bool == false)
        #expect(try !stage.requests().contains { $0["path"] as? String == "/auth/revoke" })
        try gateway.stop()
    }

    @Test func `a deletion survives Apple's outage and a restart`() throws {
        let stage = try AppleLifeStage()
        let gateway = try stage.gateway()
        let login = try stage.login(1, at: gateway)
        let subject = try #require(login.member("subject"))
        try stage.order("/simulator/trouble", ["path": "/auth/revoke", "status": 500, "times": 1000])
        #expect(try AppleLifeStage.delete(try stage.token(of: login), at: gateway).status == 202)
        try waitUntil("Apple was asked") {
            try stage.requests().contains { $0["path"] as? String == "/auth/revoke" }
        }
        try waitUntil("the pending revocation is visible", within: .seconds(30)) {
            try gateway.askAdmin("/metrics").text.contains("martlet_accounts_revocations_pending 1")
        }
        let page = try gateway.askAdmin("/accounts").object["revocations"] as? [String: Any]
        #expect(page?["pending"] as? Int == 1)
        try gateway.stop()
        #expect(!stage.events.contains { $0.type == "account.deleted" })
        try stage.order("/simulator/trouble", ["path": "/auth/revoke", "times": 0])
        let next = try stage.gateway()
        // The pause before the next attempt has grown with those that failed.
        let event = try stage.event("account.deleted", of: subject, within: .seconds(60))
        #expect(event.data["revoked_at_apple"] as? Bool == true)
        try next.stop()
    }

    @Test func `a login within the grace takes the deletion back`() throws {
        let stage = try AppleLifeStage()
        let gateway = try stage.gateway(accounts: "deletion: { grace: 1h }")
        let login = try stage.login(1, at: gateway)
        let (token, subject) = (try stage.token(of: login), try #require(login.member("subject")))
        #expect(try AppleLifeStage.delete(token, at: gateway).status == 202)
        #expect(try AppleLifeStage.status(token, at: gateway) == 401)
        let again = try stage.login(1, at: gateway)
        #expect(again.status == 200 && again.member("subject") == subject)
        _ = try stage.event("account.restored", of: subject)
        #expect(try AppleLifeStage.status(try stage.token(of: again), at: gateway) == 200)
        try gateway.stop()
    }

    @Test func `the daily check signs out who withdrew the consent, and no others`() throws {
        let stage = try AppleLifeStage()
        let gateway = try stage.gateway(provider: "check: { every: 1s, spread: 0s, rate: 50/s }")
        let gone = try stage.login(1, at: gateway)
        let (token, other) = (try stage.token(of: gone), try stage.token(of: try stage.login(2, at: gateway)))
        try waitUntil("both were checked") {
            try stage.requests().count { $0["grant_type"] as? String == "refresh_token" } >= 2
        }
        try stage.order(
            "/simulator/trouble", ["path": "/auth/token", "grant_type": "refresh_token", "status": 500, "times": 4])
        try waitUntil("checks fail") {
            try stage.requests().count { $0["grant_type"] as? String == "refresh_token" } >= 6
        }
        #expect(try AppleLifeStage.status(token, at: gateway) == 200)
        try stage.order("/simulator/user", ["subject": AppleLifeStage.subject(1), "state": "revoked"])
        try waitUntil("the session ends") { try AppleLifeStage.status(token, at: gateway) == 401 }
        #expect(try AppleLifeStage.status(other, at: gateway) == 200)
        let subject = try #require(gone.member("subject"))
        #expect(try stage.event("session.revoked", of: subject).data["reason"] as? String == "apple_check")
        try gateway.stop()
    }

    @Test func `a lost key of the grants is found at the start`() throws {
        let stage = try AppleLifeStage()
        let gateway = try stage.gateway()
        #expect(try stage.login(1, at: gateway).status == 200)
        try gateway.stop()
        let withoutKey = """
            version: 1
            server: { listen: [{ address: "127.0.0.1:0" }] }
            accounts: { url: "sqlite:accounts.db" }
            providers: { apple: { kind: apple, audiences: [a], base_url: "\(stage.apple.url)" } }
            upstreams: { api: { endpoints: ["builtin:echo"] } }
            routes: [{ name: a, match: { path: /** }, auth: none, upstream: api }]
            """
        try stage.folder.write(
            Base64.encode([UInt8](repeating: 8, count: 32), padding: .required), to: "account.key")
        for configuration in [stage.configuration(), withoutKey] {
            let result = try run(
                try Executable.martlet(),
                ["run", "--config", stage.folder.write(configuration, to: "config.yaml")])
            #expect(result.ending == .exited(78) && result.errorOutput.contains("accounts.key_missing"), "\(result)")
        }
    }
}
