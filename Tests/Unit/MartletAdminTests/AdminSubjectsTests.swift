import MartletCore
import MartletIO
import MartletIdentities
import MartletJSON
import MartletProvider
import MartletResponder
import MartletSessionTesting
import MartletTesting
import Testing

@testable import MartletAccounts
@testable import MartletAdmin

/// An account store in a file, as the admin listener of a gateway uses it.
private struct AccountStage {
    /// A subject with an account.
    let subject: String
    let operators: OperatorAccounts

    /// - Parameter outage: why no other instance can be notified.
    static func run(outage: ErrorCode? = nil, _ body: (AccountStage) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let (loop, resolver) = (try ServiceLoop(name: "test-service"), try Resolver())
        let store = try Accounts.open(
            .sqlite(path: folder.file("accounts.db")), clock: .system, logger: .silent, loop: loop, resolver: resolver)
        let sessions = AccountSessions(
            RecordedSessions(["ses_1"]), fence: LoginFence(store: MemoryStore(clock: .system), keyPrefix: "test:"),
            providers: ["apple"]
        ) { _ in }
        let runner = JobRunner(
            JobRunner.Surroundings(
                store: store.life, leases: store, accounts: store, sessions: sessions, publishClaims: { _ in },
                providers: [], keys: nil, policy: DeletionPolicy()),
            clock: .system, logger: .silent)
        let result: Result<Void, any Error>
        do {
            try await store.start()
            let identity = AccountIdentity(provider: "apple", subjects: ["001"])
            let account = try await store.signIn(identity, keeping: [:], at: UnixTime(seconds: 1))
            let operators = OperatorAccounts(
                store,
                life: IdentityLife(
                    store: store.life, runner: runner, keys: nil, policy: DeletionPolicy(), clock: .system),
                sessions: OperatorSessions(sessions, life: nil, accounts: store, logger: .silent), providers: [],
                logger: .silent
            ) { outage }
            result = .success(try await body(AccountStage(subject: account.subject, operators: operators)))
        } catch {
            result = .failure(error)
        }
        await store.shutdown()
        resolver.shutdown()
        loop.shutdown()
        try result.get()
    }
}

@Suite struct AdminSubjectsTests {
    private func respond(
        _ method: String, _ path: String, by accounts: OperatorAccounts?
    ) async throws -> LocalResponse {
        let resource = try #require(AdminResource(path: path))
        #expect(resource.methods.contains(method))
        return await AdminSubjects(accounts).respond(to: adminRequest(method, path), resource)
    }

    @Test func `paths name a subject and what is to be done`() {
        #expect(AdminResource(path: "/subjects/a%3Ab") == .subject("a:b"))
        #expect(AdminResource(path: "/subjects/a/disable") == .disable(subject: "a"))
        #expect(AdminResource(path: "/subjects/a/enable") == .enable(subject: "a"))
        for path in ["/subjects", "/subjects/", "/subjects/a/", "/subjects/a/disable/b", "/subjects/%g0"] {
            #expect(AdminResource(path: path) == nil, "\(path)")
        }
        #expect(AdminResource.subject("a").methods == ["GET", "HEAD", "DELETE"])
        for resource in [AdminResource.disable(subject: "a"), .enable(subject: "a")] {
            #expect(resource.methods == ["POST"] && resource.need("POST") == .change)
        }
        #expect(AdminResource.subject("a").need("DELETE") == .change)
    }

    @Test func `shows, disables, enables and deletes`() async throws {
        try await AccountStage.run { accounts in
            let path = "/subjects/\(accounts.subject)"
            let shown = try await respond("GET", path, by: accounts.operators)
            #expect(shown.status == 200 && shown.text.hasPrefix(#"{"subject":"\#(accounts.subject)","state":"active""#))
            #expect(shown.text.hasSuffix(#""sessions":1}"#))
            let disabled = try await respond("POST", "\(path)/disable", by: accounts.operators)
            #expect(disabled.status == 200 && disabled.text.contains(#""state":"disabled""#))
            #expect(disabled.text.contains(#""disabled":true,"disabled_at":"#))
            let enabled = try await respond("POST", "\(path)/enable", by: accounts.operators)
            #expect(enabled.status == 200 && enabled.text.contains(#""state":"active""#))
            #expect(try await respond("DELETE", path, by: accounts.operators).status == 204)
        }
    }

    @Test func `404 for an unknown subject and without accounts, 503 in an outage`() async throws {
        try await AccountStage.run(outage: "store.down") { accounts in
            for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "/disable"), ("POST", "/enable")] {
                #expect(try await respond(method, "/subjects/usr_1\(path)", by: nil).outcome == "404 not_found")
                let known = try await respond(method, "/subjects/\(accounts.subject)\(path)", by: accounts.operators)
                #expect(known.outcome == (method == "GET" ? "200" : "503 auth_unavailable"), "\(method) \(path)")
            }
        }
        try await AccountStage.run { accounts in
            for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "/disable"), ("POST", "/enable")] {
                let unknown = try await respond(method, "/subjects/usr_none\(path)", by: accounts.operators)
                #expect(unknown.outcome == "404 not_found", "\(method) \(path)")
            }
        }
    }
}
