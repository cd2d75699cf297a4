import MartletConfig
import MartletCore
import MartletJSON
import MartletTesting
import Testing

@testable import MartletAccounts
@testable import MartletProvider
@testable import MartletSession
@testable import MartletSignIn

/// The endpoints with real stores: sessions in memory, accounts in SQLite.
@Suite struct `Over real stores` {
    /// Runs a test with an account store in a folder of its own.
    private func withStand(
        maximumPerSubject: Int = 10, _ body: (Stand, AccountStore) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        let engine = SQLiteEngine(
            path: folder.file("accounts.db"), options: SQLiteOptions(), schema: Schema(.sqlite), clock: .system,
            logger: .silent)
        // Behind that of providers: a credential of the second in which an identity was unlinked is an old one.
        let time = ManualTime()
        time.advance(seconds: -10)
        let accounts = AccountStore(engine, clock: time.clock, logger: .silent)
        try await accounts.start()
        let policy = SessionPolicy(
            accessTTL: .seconds(900), refreshTTL: .seconds(60 * 86_400), idleTimeout: .seconds(30 * 86_400),
            refreshReuseGrace: .seconds(30), maximumPerSubject: maximumPerSubject, cacheTTL: .seconds(5))
        let stand = Stand { setup in
            setup.accounts = accounts
            setup.sessions = SessionStore(
                policy: policy, backend: MemorySessions(), clock: setup.clock, onRevoked: { _ in }, onChanged: { _ in })
        }
        let result: Result<Void, any Error>
        do { result = .success(try await body(stand, accounts)) } catch { result = .failure(error) }
        await accounts.shutdown()
        try result.get()
    }

    @Test func `a user has one subject by every provider`() async throws {
        try await withStand { stand, accounts in
            stand.apple.script.withLock { $0.storedClaims = ["name": "Anna"] }
            let apple = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
            let subject = try #require(apple["subject"])
            let token = try #require(apple["access_token"])
            #expect(subject.hasPrefix("usr_") && apple.object["new_account"]?.bool == true)
            #expect(await stand.post("/auth/link/password", bearer: token, #"{"proof":"a82"}"#).status == 204)
            let password = await stand.post("/auth/login/password", #"{"proof":"a82"}"#)
            #expect(password["subject"] == subject && password.object["new_account"]?.bool == false)
            let session = await stand.send("GET", "/auth/session", bearer: password["access_token"])
            #expect(session.object["claims"]?.object == ["name": "Anna"])
            let now = UnixTime(seconds: stand.time.now)
            let identity = Identity(
                providerSubject: "anna", issuer: "i", claims: [:], authTime: now, issuedAt: now, expiresAt: now)
            let subjects = AccountSubjects(accounts: accounts, clock: .system)
            #expect(try await subjects.subject(of: identity, provider: "apple").subject == subject)
            let last = await stand.send("DELETE", "/auth/link/apple", bearer: password["access_token"])
            #expect(last.status == 204)
            #expect(await stand.send("GET", "/auth/session", bearer: token).status == 401)
            let conflict = await stand.send("DELETE", "/auth/link/password", bearer: password["access_token"])
            #expect(conflict.status == 409 && conflict.code == "last_identity")
            #expect(try await subjects.subject(of: identity, provider: "apple").subject != subject)
        }
    }

    @Test func `an identity may name its account, or have none`() async throws {
        try await withStand { stand, accounts in
            let subjects = AccountSubjects(accounts: accounts, clock: .system)
            let now = UnixTime(seconds: 0)
            func identity(_ subject: String, _ source: SubjectSource) -> Identity {
                Identity(
                    providerSubject: subject, issuer: "i", claims: [:], authTime: now, issuedAt: now, expiresAt: now,
                    subjectSource: source)
            }
            func resolve(_ subject: String, _ source: SubjectSource = .existingAccount) async -> String {
                do throws(AuthenticationError) {
                    let resolved = try await subjects.subject(of: identity(subject, source), provider: "keys")
                    let known = try await subjects.knownSubject(of: identity(subject, source), provider: "keys")
                    return known == resolved ? resolved.subject : "different"
                } catch {
                    return "\(error.disposition) \(error.code)"
                }
            }
            let login = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
            let subject = try #require(login["subject"])
            #expect(await resolve("billing", .provider) == "keys:billing")
            #expect(await resolve(subject, .provider) == "keys:\(subject)")
            #expect(await resolve(subject) == subject)
            // No account was created for any of them.
            #expect(await resolve("usr_none") == "rejected account.deleted")
            #expect(
                try await accounts.accounts(from: "", AccountFilter(), limit: 9).accounts.map(\.subject) == [subject])
            _ = try await accounts.changeClaims(of: subject, by: ClaimPatch(["role": "staff"]))
            let resolved = try await subjects.subject(of: identity(subject, .existingAccount), provider: "keys")
            #expect(resolved.claims.account == ["role": "staff"])
            try await accounts.setDisabled(account: subject, at: now)
            #expect(await resolve(subject) == "denied account.disabled")
            try await accounts.setDisabled(account: subject, at: nil)
            #expect(await resolve(subject) == subject)
            _ = try await accounts.life.requestDeletion(of: subject, reason: "user", DeletionPolicy(), at: 1_000)
            #expect(await resolve(subject) == "rejected account.deleted")
            await accounts.shutdown()
            #expect(await resolve(subject) == "unavailable accounts.stopped")
        }
    }

    @Test func `a refresh token returns one new pair for a short time, and ends the session later`() async throws {
        try await withStand { stand, _ in
            let first = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
            let body = #"{"refresh_token":"\#(first["refresh_token"] ?? "")"}"#
            let second = await stand.post("/auth/refresh", body)
            #expect(second.status == 200 && second["access_token"] != first["access_token"])
            stand.time.advance(seconds: 29)
            #expect(await stand.post("/auth/refresh", body)["access_token"] == second["access_token"])
            stand.time.advance(seconds: 2)
            let stolen = await stand.post("/auth/refresh", body)
            #expect(stolen.status == 401 && stolen.code == "credential_invalid")
            #expect(await stand.send("GET", "/auth/session", bearer: second["access_token"]).status == 401)
            let end = await stand.post("/auth/refresh", #"{"refresh_token":"\#(second["refresh_token"] ?? "")"}"#)
            #expect(end.status == 401)
        }
    }

    @Test(arguments: ["access_token", "refresh_token"])
    func `a revoked token ends its session alone`(name: String) async throws {
        try await withStand { stand, _ in
            let kept = try await stand.login("apple", "anna")
            let first = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
            let token = try #require(first[name])
            let other = token.dropLast() + (token.hasSuffix("A") ? "Q" : "A")
            #expect(await stand.post("/auth/revoke", #"{"token":"\#(other)"}"#).status == 200)
            #expect(await stand.send("GET", "/auth/session", bearer: first["access_token"]).status == 200)
            for _ in 0..<2 { #expect(await stand.post("/auth/revoke", #"{"token":"\#(token)"}"#).status == 200) }
            #expect(await stand.send("GET", "/auth/session", bearer: first["access_token"]).status == 401)
            let refresh = #"{"refresh_token":"\#(first["refresh_token"] ?? "")"}"#
            #expect(await stand.post("/auth/refresh", refresh).status == 401)
            #expect(await stand.send("GET", "/auth/session", bearer: kept).status == 200)
        }
    }

    @Test func `an access token that has expired still ends its session`() async throws {
        try await withStand { stand, _ in
            let first = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
            let old = first["access_token"] ?? ""
            stand.time.advance(seconds: Int64(first["expires_in"] ?? "") ?? 3600)
            #expect(await stand.send("GET", "/auth/session", bearer: old).status == 401)
            #expect(await stand.post("/auth/revoke", #"{"token":"\#(old)"}"#).status == 200)
            let refresh = #"{"refresh_token":"\#(first["refresh_token"] ?? "")"}"#
            #expect(await stand.post("/auth/refresh", refresh).status == 401)
        }
    }

    @Test func `a refresh token that was used still ends its session`() async throws {
        try await withStand { stand, _ in
            let first = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
            let old = first["refresh_token"] ?? ""
            let second = await stand.post("/auth/refresh", #"{"refresh_token":"\#(old)"}"#)
            stand.time.advance(seconds: 60)
            #expect(await stand.post("/auth/revoke", #"{"token":"\#(old)"}"#).status == 200)
            #expect(await stand.send("GET", "/auth/session", bearer: second["access_token"]).status == 401)
        }
    }

    @Test func `the oldest of too many sessions ends`() async throws {
        try await withStand(maximumPerSubject: 2) { stand, _ in
            var tokens: [String] = []
            for _ in 0..<3 {
                tokens.append(try await stand.login("apple", "anna"))
                stand.time.advance(seconds: 1)
            }
            let statuses = [
                await stand.send("GET", "/auth/session", bearer: tokens[0]).status,
                await stand.send("GET", "/auth/session", bearer: tokens[1]).status,
                await stand.send("GET", "/auth/session", bearer: tokens[2]).status,
            ]
            #expect(statuses == [401, 200, 200])
        }
    }

    /// Under concurrent operations no session remains whose identity its subject does not have.
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `no session outlives its identity`(seed: UInt64) async throws {
        try await withStand { stand, accounts in
            var generator = SeededGenerator(seed: seed)
            var tokens: [String] = []
            for _ in 0..<12 {
                let steps = (0..<8).map { _ in Step(tokens, using: &generator) }
                let fresh = await withTaskGroup(of: String?.self) { group in
                    for step in steps { group.addTask { await step.run(on: stand) } }
                    return await group.reduce(into: [String?]()) { $0.append($1) }
                }
                tokens += fresh.compactMap { $0 }
                for token in tokens {
                    let session = await stand.send("GET", "/auth/session", bearer: token)
                    guard let subject = session["subject"], let provider = session["provider"] else { continue }
                    let identities = try await accounts.identities(of: subject)
                    #expect(identities.contains { $0.provider == provider }, "\(subject) \(provider)")
                }
            }
            #expect(tokens.count > 10)
        }
    }

    /// One operation of one of two users.
    private struct Step: Sendable {
        private let kind: Int
        private let provider: String
        private let person: String
        private let token: String?

        init(_ tokens: [String], using generator: inout SeededGenerator) {
            kind = Int.random(in: 0..<8, using: &generator)
            provider = Bool.random(using: &generator) ? "apple" : "password"
            person = Bool.random(using: &generator) ? "anna" : "bert"
            token = tokens.suffix(6).randomElement(using: &generator)
        }

        /// - Returns: the access token of a resulting session.
        func run(on stand: Stand) async -> String? {
            switch kind {
            case 0...2: return await stand.post("/auth/login/\(provider)", #"{"proof":"\#(person)"}"#)["access_token"]
            case 3, 4:
                _ = await stand.post("/auth/link/\(provider)", bearer: token, #"{"proof":"\#(person)"}"#)
            case 5, 6: _ = await stand.send("DELETE", "/auth/link/\(provider)", bearer: token)
            default: _ = await stand.send("POST", "/auth/logout", bearer: token)
            }
            return nil
        }
    }
}
