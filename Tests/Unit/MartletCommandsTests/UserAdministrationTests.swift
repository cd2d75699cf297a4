import MartletConfig
import MartletCore
import MartletIdentities
import MartletJSON
import MartletProvider
import MartletServer
import MartletSession
import MartletSignIn
import MartletTesting
import Testing

@testable import MartletAccounts
@testable import MartletCommands
@testable import MartletSession

/// Accepts passwords of at least three bytes, which are their own hashes; names are letters, stored in lower case.
private struct LenientMaker: UserCreating {
    struct Configuration: ConfigurationDecodable {
        init() {}
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    static let kind: ProviderKind = "lenient"
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    /// The error of every call.
    var failure: AuthenticationError?

    init(failure: AuthenticationError? = nil) { self.failure = failure }
    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}

    var storesRecords: Bool { true }

    func canonicalName(_ name: String) -> String? {
        !name.isEmpty && name.allSatisfy(\.isLetter) ? name.lowercased() : nil
    }

    func makeRecord(name: String, password: Secret) async throws(AuthenticationError) -> UserRecord {
        if let failure { throw failure }
        guard let key = canonicalName(name), password.count >= 3 else { throw .malformed("lenient.refused") }
        let hash = password.withBytes { String(decoding: $0, as: UTF8.self) }
        return UserRecord(name: name, key: key, hash: hash, isDisabled: false)
    }
}

/// Records the subjects whose sessions are ended.
private final class EndedSessions: SessionStoring {
    static let accessPrefix = "mat_"

    private let subjects = Box<[String]>([])
    let outage: SessionError?

    init(outage: SessionError? = nil) { self.outage = outage }

    var ended: [String] { subjects.value }

    func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession { throw .rejected("session.unknown") }

    func verify(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> VerifiedSession { throw .rejected("test.unused") }
    var findsMarks: Bool { false }
    func create(
        subject: String, provider: String, identity: Identity, client: SessionClient, evicting: Bool,
        mark: ChangeMark?
    ) async throws(SessionError) -> IssuedTokens { throw SessionError("test.unused", .invalid) }
    func apply(_ claims: VersionedClaims, to subject: String) async throws(SessionError) -> Bool { true }
    func refresh(
        _ token: Secret, provenBy key: RefreshKey, from address: [UInt8], reportingReuse reportReuse: EndReport?
    ) async throws(SessionError) -> IssuedTokens {
        throw SessionError("test.unused", .invalid)
    }
    func endSession(withRefreshToken token: Secret, reporting report: EndReport?) async throws(SessionError) {
        throw SessionError("test.unused", .invalid)
    }
    func renew(_ token: Credential, with proof: SessionProof) async throws(SessionError) -> SessionProof {
        throw SessionError("test.unused", .invalid)
    }
    func page(of subject: String, from start: SessionPosition?) async throws(SessionError) -> SessionPage {
        SessionPage(sessions: [], next: nil)
    }
    func end(_ session: SessionReference) async throws(SessionError) -> Bool { false }
    func end(sessionID id: String) async throws(SessionError) -> Bool { false }
    func endAll(subject: String, provider: String?, except kept: SessionReference?) async throws(SessionError) {
        if let outage { throw outage }
        let isWhole = provider == nil && kept == nil
        subjects.withLock { $0.append(isWhole ? subject : "some of \(subject)") }
    }
}

/// A store with an account of the user `ann`, and its administration.
private final class Office {
    let accounts: AccountStore
    private let folder: TemporaryFolder
    /// The account's subject; empty in a store that is not open.
    let ann: String
    let sessions: EndedSessions?
    let store = MemoryStore(clock: .system)
    /// The subjects whose cached decisions were invalidated.
    let forgotten: Box<[String]>
    let administration: UserAdministration

    init(
        isOpen: Bool = true, sessions: EndedSessions? = EndedSessions(), maker: LenientMaker = LenientMaker()
    ) async throws {
        folder = try TemporaryFolder()
        let engine = SQLiteEngine(
            path: folder.file("accounts.db"), options: SQLiteOptions(), schema: Schema(.sqlite), clock: .system,
            logger: .silent)
        accounts = AccountStore(engine, clock: .system, logger: .silent)
        let identity = AccountIdentity(provider: "password", subjects: ["ann"])
        if isOpen {
            try await accounts.start()
            ann = try await accounts.signIn(identity, keeping: [:], at: UnixTime(seconds: 0)).subject
        } else {
            ann = ""
        }
        self.sessions = sessions
        let forgotten = Box<[String]>([])
        self.forgotten = forgotten
        let fence = LoginFence(store: store, keyPrefix: "test:")
        administration = UserAdministration(
            accounts: accounts, maker: maker, provider: "password", clock: .system,
            ending: sessions.map { sessions in
                SessionEnding(
                    AccountSessions(sessions, fence: fence, providers: ["password"]) { subject in
                        forgotten.withLock { $0.append(subject) }
                    }, logger: .silent)
            })
    }

    deinit {
        Task { [accounts] in await accounts.shutdown() }
    }

    func said(
        _ action: UserAdministration.Action, _ name: String = "", password: String = "secret"
    ) async throws -> [String] {
        guard action.takesName else {
            var lines: [String] = []
            try await administration.list(UserAdministration.Filter()) { lines.append($0.line) }
            return lines
        }
        return try await administration.perform(action, name: name) { () throws(StartError) in Secret(password) }.lines
    }

    /// The error code and the exit code of a failed action.
    func failure(
        _ action: UserAdministration.Action, _ name: String = "", password: String = "secret"
    ) async -> (ErrorCode, ExitCode)? {
        do throws(StartError) {
            guard action.takesName else {
                try await administration.list(UserAdministration.Filter()) { _ in }
                return nil
            }
            _ = try await administration.perform(action, name: name) { () throws(StartError) in Secret(password) }
            return nil
        } catch {
            return (error.code, error.exit)
        }
    }
}

@Suite struct `Administration of users` {
    @Test func `adds, lists, disables and enables users and changes their passwords`() async throws {
        let office = try await Office()
        #expect(try await office.said(.list) == [])
        #expect(try await office.said(.add, "Ann") == ["user 'ann' added"])
        #expect(try await office.said(.add, "bob") == ["user 'bob' added"])
        #expect(try await office.said(.list) == ["Ann\tactive", "bob\tactive"])
        #expect(try await office.said(.disable, "BOB") == ["user 'bob' disabled"])
        #expect(try await office.said(.list) == ["Ann\tactive", "bob\tdisabled"])
        #expect(try await office.said(.enable, "bob") == ["user 'bob' enabled"])
        #expect(try await office.accounts.record(for: "bob")?.isDisabled == false)
        #expect(office.sessions?.ended == [])
        #expect(
            try await office.said(.passwd, "ann", password: "other")
                == ["password of user 'ann' changed", "all sessions of the user ended"])
        let ann = try await office.accounts.record(for: "ann")
        #expect(ann?.hash == "other" && ann?.name == "Ann")
    }

    @Test(arguments: [UserAdministration.Action.passwd, .disable])
    func `invalidates a login in progress`(action: UserAdministration.Action) async throws {
        let office = try await Office()
        _ = try await office.said(.add, "ann")
        let fence = LoginFence(store: office.store, keyPrefix: "test:")
        let start = try await fence.start()
        #expect(!(try await fence.wasOvertaken(start, office.ann, provider: "password")))
        _ = try await office.said(action, "ann")
        #expect(try await fence.wasOvertaken(start, office.ann, provider: "password"))
        #expect(!(try await fence.wasOvertaken(try await fence.start(), office.ann, provider: "password")))
    }

    @Test func `ends every session of the account when the password changes or the user is disabled`() async throws {
        let office = try await Office()
        _ = try await office.said(.add, "ann")
        _ = try await office.said(.disable, "ann")
        _ = try await office.said(.passwd, "ann")
        #expect(office.sessions?.ended == [office.ann, office.ann])
        #expect(office.forgotten.value == [office.ann, office.ann])
    }

    @Test func `reports that sessions stay valid if they are not shared`() async throws {
        let office = try await Office(sessions: nil)
        _ = try await office.said(.add, "ann")
        #expect(try await office.said(.disable, "ann").last?.hasPrefix("note: ") == true)
        #expect(try await office.said(.enable, "ann").count == 1)
    }

    @Test func `rejects invalid actions as wrong usage, without reading a password`() async throws {
        let office = try await Office()
        _ = try await office.said(.add, "ann")
        let rows: [(UserAdministration.Action, String, ErrorCode)] = [
            (.add, "ANN", "user.duplicate"), (.passwd, "bob", "user.unknown"), (.disable, "bob", "user.unknown"),
            (.enable, "bob", "user.unknown"), (.add, "a b", "user.bad_name"), (.disable, "", "user.bad_name"),
        ]
        for (action, name, code) in rows {
            var hasReadPassword = false
            do throws(StartError) {
                _ = try await office.administration.perform(action, name: name) { () throws(StartError) in
                    hasReadPassword = true
                    return Secret("secret")
                }
                Issue.record("\(action) \(name) was done")
            } catch {
                #expect(error.code == code && error.exit == .usage && !hasReadPassword)
            }
        }
        let short = await office.failure(.passwd, "ann", password: "xy")
        #expect(short?.0 == "lenient.refused" && short?.1 == .usage)
        #expect(try await office.accounts.record(for: "ann")?.hash == "secret")
    }

    @Test func `distinguishes outages from wrong usage`() async throws {
        let down = try await Office(isOpen: false)
        for action in UserAdministration.Action.allCases where action != .unlock {
            let failure = await down.failure(action, "ann")
            #expect(failure?.0 == .accountsNotStarted && failure?.1 == .unavailable)
        }
        let rows: [(AuthenticationError, ExitCode)] = [
            (.malformed("x.y"), .usage), (AuthenticationError("x.y", .notFound), .configuration),
            (.unavailable("x.y"), .internalFault),
        ]
        for (error, exit) in rows {
            let failure = try await Office(maker: LenientMaker(failure: error)).failure(.add, "ann")
            #expect(failure?.0 == "x.y" && failure?.1 == exit)
        }
    }

    @Test func `deletes a user, ends the sessions, and says what is left of the account`() async throws {
        let office = try await Office()
        for name in ["ann", "bob"] { _ = try await office.said(.add, name) }
        let lines = try await office.said(.delete, "ANN")
        #expect(lines.first == "user 'ann' deleted" && lines.last == "all sessions of the user ended")
        #expect(lines.count == 3 && lines[1].contains("only identity of account \(office.ann)"))
        #expect(office.sessions?.ended == [office.ann] && office.forgotten.value == [office.ann])
        #expect(try await office.said(.delete, "bob") == ["user 'bob' deleted"])
        #expect(try await office.said(.list) == [])
        let again = await office.failure(.delete, "ann")
        #expect(again?.0 == "user.unknown" && again?.1 == .usage)
    }

    @Test func `shows a user with the account`() async throws {
        let office = try await Office()
        for name in ["Ann", "bob"] { _ = try await office.said(.add, name) }
        #expect(try await office.said(.show, "ann") == ["Ann\tactive\taccount \(office.ann)"])
        #expect(try await office.said(.show, "bob") == ["bob\tactive\tno account yet"])
        let shown = try await office.administration.perform(.show, name: "ann") { Secret("") }
        #expect(
            shown.json == ["name": "ann", "display_name": "Ann", "state": "active", "subject": .string(office.ann)])
        let disabled = try await office.administration.perform(.disable, name: "ann") { Secret("") }
        #expect(disabled.json == ["name": "ann", "action": "disabled", "sessions": "ended"])
    }

    @Test func `lists users in pages, and the disabled ones`() async throws {
        let office = try await Office()
        for name in ["a", "b", "c", "d"] { _ = try await office.said(.add, name) }
        _ = try await office.said(.disable, "c")
        func listed(_ filter: UserAdministration.Filter) async throws -> [String] {
            var names: [String] = []
            try await office.administration.list(filter) { names.append($0.key) }
            return names
        }
        #expect(try await listed(UserAdministration.Filter(limit: 2)) == ["a", "b"])
        #expect(try await listed(UserAdministration.Filter(after: "B", limit: 5)) == ["c", "d"])
        #expect(try await listed(UserAdministration.Filter(onlyDisabled: true)) == ["c"])
    }

    @Test func `unlocks only where attempts are counted in a shared store`() async throws {
        let office = try await Office()
        let failure = await office.failure(.unlock, "ann")
        #expect(failure?.0 == "user.store_not_shared" && failure?.1 == .configuration)
    }

    @Test func `reports a change whose sessions could not be ended`() async throws {
        let office = try await Office(sessions: EndedSessions(outage: SessionError("session.store_down", .unavailable)))
        _ = try await office.said(.add, "ann")
        let failure = await office.failure(.disable, "ann")
        #expect(failure?.0 == "session.store_down" && failure?.1 == .unavailable)
        #expect(try await office.accounts.record(for: "ann")?.isDisabled == true)
    }

    @Test func `prints no control characters of a name`() async throws {
        let office = try await Office()
        let user = UserRecord(name: "a\u{1B}[2J\nb", key: "a", hash: "x", isDisabled: false)
        try await office.accounts.addUser(user, at: UnixTime(seconds: 0))
        #expect(try await office.said(.list) == ["a?[2J?b\tactive"])
    }
}
