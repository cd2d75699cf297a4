import MartletConfig
import MartletCore
import MartletIdentities
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletAccounts
@testable import MartletResponder
@testable import MartletSession
@testable import MartletSignIn

/// `PATCH /profile`.
@Suite struct `A profile` {
    /// The endpoints over an account store in SQLite and sessions that have the claims of accounts.
    private struct ProfileStand {
        let stand: Stand
        let accounts: AccountStore
        /// The subjects whose direct decisions were dropped.
        let dropped: Box<[String]>

        func patch(_ token: String?, _ body: String, type: String = Stand.json) async -> Stand.Reply {
            await stand.send("PATCH", "/auth/profile", bearer: token, type: type, Array(body.utf8))
        }

        func claims(_ token: String) async -> JSONObject? {
            await stand.send("GET", "/auth/session", bearer: token).object["claims"]?.object
        }
    }

    private func withStand(_ body: (ProfileStand) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let engine = SQLiteEngine(
            path: folder.file("accounts.db"), options: SQLiteOptions(), schema: Schema(.sqlite), clock: .system,
            logger: .silent)
        let accounts = AccountStore(engine, clock: .system, logger: .silent)
        try await accounts.start()
        let dropped = Box<[String]>([])
        let stand = Stand { setup in
            let sessions = SessionStore(
                policy: SessionPolicy(
                    accessTTL: .seconds(900), refreshTTL: .seconds(86_400), idleTimeout: .seconds(86_400),
                    refreshReuseGrace: .seconds(30), maximumPerSubject: 10, cacheTTL: .seconds(5)),
                backend: MemorySessions(), clock: setup.clock,
                readsClaims: true, onRevoked: { _ in }, onChanged: { _ in })
            setup.accounts = accounts
            setup.sessions = sessions
            setup.claims = ClaimPublisher(accounts: accounts, sessions: sessions) { subject, _ in
                dropped.withLock { $0.append(subject) }
            }
        }
        stand.apple.script.withLock { $0.claims = ["name": "Anna", "email": "anna@example.com"] }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(ProfileStand(stand: stand, accounts: accounts, dropped: dropped)))
        } catch {
            result = .failure(error)
        }
        await accounts.shutdown()
        try result.get()
    }

    @Test func `is set in parts, and removed with null`() async throws {
        try await withStand { profiles in
            let token = try await profiles.stand.login("apple", "anna")
            let first = await profiles.patch(token, #"{"name":"  Anna   Bauer ","locale":"de-at"}"#)
            #expect(first.status == 200 && first.object == ["name": "Anna Bauer", "locale": "de-AT"])
            #expect(first.field("Cache-Control") == "no-store")
            #expect(
                await profiles.claims(token)
                    == ["name": "Anna Bauer", "email": "anna@example.com", "locale": "de-AT"])
            #expect(await profiles.patch(token, #"{"locale":"en"}"#).object == ["name": "Anna Bauer", "locale": "en"])
            #expect(await profiles.patch(token, "{}").object == ["name": "Anna Bauer", "locale": "en"])
            let account = await profiles.stand.send("GET", "/auth/account", bearer: token)
            #expect(account.object["profile"]?.object == ["name": "Anna Bauer", "locale": "en"])
            #expect(await profiles.patch(token, #"{"name":null,"locale":null}"#).object == [:])
            // What the provider says is there again.
            #expect(await profiles.claims(token) == ["name": "Anna", "email": "anna@example.com"])
        }
    }

    @Test func `is the same in a form, where an empty text removes`() async throws {
        try await withStand { profiles in
            let token = try await profiles.stand.login("apple", "anna")
            let set = await profiles.patch(token, "name=Anna+B&locale=zh-hans-cn", type: Stand.form)
            #expect(set.object == ["name": "Anna B", "locale": "zh-Hans-CN"])
            #expect(await profiles.patch(token, "locale=", type: Stand.form).object == ["name": "Anna B"])
            #expect(await profiles.patch(token, #"{"name":""}"#).object == [:])
        }
    }

    @Test func `survives logins and refreshes, and reaches direct credentials`() async throws {
        try await withStand { profiles in
            let login = await profiles.stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
            let token = try #require(login["access_token"])
            #expect(await profiles.patch(token, #"{"name":"Ann"}"#).status == 200)
            #expect(profiles.dropped.value == [login["subject"]])
            let next = try await profiles.stand.login("apple", "anna")
            #expect(await profiles.claims(next)?["name"]?.string == "Ann")
            let body = #"{"refresh_token":"\#(login["refresh_token"] ?? "")"}"#
            let refreshed = try #require(await profiles.stand.post("/auth/refresh", body)["access_token"])
            #expect(await profiles.claims(refreshed)?["name"]?.string == "Ann")
            let resolved = try await AccountSubjects(accounts: profiles.accounts, clock: .system).subject(
                of: Identity(
                    providerSubject: "anna", issuer: "i", claims: [:], authTime: UnixTime(seconds: 0),
                    issuedAt: UnixTime(seconds: 0), expiresAt: UnixTime(seconds: 0)), provider: "apple")
            #expect(resolved.claims.account == ["name": "Ann"])
        }
    }

    @Test func `yields to an operator`() async throws {
        try await withStand { profiles in
            let login = await profiles.stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
            let (token, subject) = (try #require(login["access_token"]), try #require(login["subject"]))
            _ = try await profiles.accounts.changeClaims(of: subject, by: ClaimPatch(["name": "A. Bauer"]))
            #expect(await profiles.patch(token, #"{"name":"Root","locale":"en"}"#).object["name"]?.string == "Root")
            #expect(await profiles.claims(token)?["name"]?.string == "A. Bauer")
            #expect(await profiles.claims(token)?["locale"]?.string == "en")
        }
    }

    @Test(
        arguments: [
            (#"{"name":1}"#, "signin.bad_member", ["/name"], BodyError.Code.unknownType),
            (#"{"locale":["en"]}"#, "signin.bad_member", ["/locale"], .unknownType),
            (#"{"name":"a\u0007b"}"#, "signin.bad_name", ["/name"], .invalid),
            (#"{"name":"a\nb"}"#, "signin.bad_name", ["/name"], .invalid),
            (#"{"name":"a\u202eb"}"#, "signin.bad_name", ["/name"], .invalid),
            (#"{"name":"  "}"#, "signin.bad_name", ["/name"], .invalid),
            (#"{"name":"\#(String(repeating: "é", count: 257))"}"#, "signin.bad_name", ["/name"], .tooLong),
            (#"{"locale":"english please"}"#, "signin.bad_locale", ["/locale"], .invalid),
            (#"{"locale":"e"}"#, "signin.bad_locale", ["/locale"], .invalid),
            (#"{"name":"a","email":"x"}"#, "signin.unknown_member", ["/email"], .invalid),
            (#"{"sub":"x","email_verified":true}"#, "signin.unknown_member", ["/email_verified", "/sub"], .invalid),
            (#"{"my_secret":null}"#, "signin.unknown_member", [""], .invalid),
            (#"{"n\u00e4me":"a"}"#, "signin.unknown_member", [""], .invalid),
            (#"{"名前":"a","name":"b","sub":null,"имя":1}"#, "signin.unknown_member", ["/sub", ""], .invalid),
            (#"{"name":"a","name":"b"}"#, "signin.repeated_member", ["/name"], .repeated),
            ("[]", "signin.not_an_object", [""], .unknownType),
            ("", "signin.body_missing", [""], .missing),
        ] as [(String, String, [String], BodyError.Code)])
    func `is not changed by a body that is invalid`(
        body: String, reason: String, pointers: [String], code: BodyError.Code
    ) async throws {
        try await withStand { profiles in
            let token = try await profiles.stand.login("apple", "anna")
            let reply = await profiles.patch(token, body)
            #expect(reply.summary == "400 request_invalid \(reason)")
            #expect(reply.response.failure?.bodyErrors.map(\.pointer) == pointers)
            #expect(reply.response.failure?.bodyErrors.allSatisfy { $0.code == code } == true)
            #expect(await profiles.claims(token)?["name"]?.string == "Anna")
            #expect(profiles.dropped.value.isEmpty)
        }
    }

    @Test func `names the member that was meant`() async throws {
        try await withStand { profiles in
            let reply = await profiles.patch(try await profiles.stand.login("apple", "anna"), #"{"Locale":"en"}"#)
            #expect(
                reply.response.failure?.bodyErrors.map(\.detail)
                    == ["Only `name` and `locale` can be changed (`Locale`: did you mean `locale`?)."])
        }
    }

    @Test func `needs a session, an account, and both stores`() async throws {
        try await withStand { profiles in
            #expect(await profiles.patch(nil, "{}").summary == "401 credential_missing auth.credential_missing")
            #expect(await profiles.patch("mat_x", "{}").status == 401)
            let text = await profiles.patch(try await profiles.stand.login("apple", "anna"), "{}", type: "text/plain")
            #expect(text.summary == "415 request_invalid signin.unsupported_media_type")
            let login = await profiles.stand.post("/auth/login/apple", #"{"proof":"eve"}"#)
            let (token, subject) = (try #require(login["access_token"]), try #require(login["subject"]))
            let (life, policy) = (profiles.accounts.life, DeletionPolicy())
            let jobs = try await life.requestDeletion(of: subject, reason: "user", policy, at: 1)
            try await life.deleteAccount(try #require(jobs.last), policy, at: 1)
            #expect(await profiles.patch(token, "{}").summary == "404 not_found accounts.unknown_account")
        }
        let none = Stand(hasAccounts: false)
        let token = try await none.login("apple", "anna")
        let missing = await none.send("PATCH", "/auth/profile", bearer: token, type: Stand.json, Array("{}".utf8))
        #expect(missing.summary == "404 no_route signin.no_accounts")
        let stand = Stand()
        let other = try await stand.login("apple", "anna")
        stand.accounts.callsLeft = 0
        let outage = await stand.send("PATCH", "/auth/profile", bearer: other, type: Stand.json, Array("{}".utf8))
        #expect(outage.summary == "503 auth_unavailable accounts.unavailable")
        #expect(await stand.send("GET", "/auth/account", bearer: other).status == 503)
    }

    @Test func `changes a limited number of times`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        var statuses: [Int: Int] = [:]
        for _ in 0..<310 {
            let reply = await stand.send("PATCH", "/auth/profile", bearer: token, type: Stand.json, Array("{}".utf8))
            statuses[reply.status, default: 0] += 1
        }
        #expect(statuses == [200: 300, 429: 10])
    }
}
