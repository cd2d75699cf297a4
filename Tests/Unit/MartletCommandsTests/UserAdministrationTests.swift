import MartletAccounts
import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletServer
import MartletSession
import MartletSignIn
import MartletTesting
import Testing

@testable import MartletCommands

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

/// Users in a dictionary, and an account for each initial identity.
private final class FewAccounts: AccountStoring {
    private let records = Box<[String: UserRecord]>([:])
    private let subjects: [String: String]
    /// The error of every call.
    let outage: AccountError?

    init(subjects: [String: String] = [:], outage: AccountError? = nil) {
        self.subjects = subjects
        self.outage = outage
    }

    var all: [String: UserRecord] { records.value }

    private func change(_ key: String, _ change: (UserRecord) -> UserRecord) throws(AccountError) {
        if let outage { throw outage }
        let isKnown = records.withLock { records in
            guard let record = records[key] else { return false }
            records[key] = change(record)
            return true
        }
        guard isKnown else { throw AccountError("accounts.unknown_user", .notFound, "there is no such user") }
    }

    func start() async throws(AccountError) {}
    func shutdown() async {}
    func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, setting rules: JSONObject, issuedAt: UnixTime?,
        at now: UnixTime
    ) async throws(AccountError) -> Account { throw AccountError("test.unused", .unavailable, "") }
    func find(_ identity: AccountIdentity) async throws(AccountError) -> Account? {
        subjects["\(identity.provider):\(identity.subjects.joined(separator: ","))"].map {
            Account(subject: $0, storedClaims: [:], isNew: false)
        }
    }
    func link(
        _ identity: AccountIdentity, to subject: String, askedBySessionOf start: UnixTime?, keeping claims: JSONObject,
        at now: UnixTime
    ) async throws(AccountError) {}
    func unlink(provider: String, from subject: String) async throws(AccountError) -> AccountIdentity {
        throw AccountError("accounts.last_identity", .lastIdentity, "")
    }
    func linkedIdentities(of subject: String) async throws(AccountError) -> [LinkedIdentity] { [] }
    func noteLogin(
        of subject: String, with provider: String, email: EmailAddress?, at now: UnixTime
    ) async throws(AccountError) {}
    func identities(of subject: String) async throws(AccountError) -> [AccountIdentity] { [] }
    func claims(of subject: String) async throws(AccountError) -> VersionedClaims { .none }
    func profile(of subject: String) async throws(AccountError) -> JSONObject { [:] }
    func changeProfile(of subject: String, by patch: ProfilePatch) async throws(AccountError) -> JSONObject { [:] }
    func changeClaims(
        of subject: String, provider: String, by patch: ClaimPatch
    ) async throws(AccountError) -> Bool { false }

    func addUser(_ user: UserRecord, at now: UnixTime) async throws(AccountError) {
        if let outage { throw outage }
        records.withLock { $0[user.key] = user }
    }
    func setHash(of key: String, to hash: String) async throws(AccountError) {
        try change(key) { UserRecord(name: $0.name, key: $0.key, hash: hash, isDisabled: $0.isDisabled) }
    }
    func setProved(_ key: String, at now: UnixTime) async throws(AccountError) {
        try change(key) {
            UserRecord(name: $0.name, key: $0.key, hash: $0.hash, isDisabled: $0.isDisabled, provedAt: now)
        }
    }
    func setDisabled(_ key: String, _ isDisabled: Bool) async throws(AccountError) {
        try change(key) { UserRecord(name: $0.name, key: $0.key, hash: $0.hash, isDisabled: isDisabled) }
    }
    func users(
        after start: String, onlyDisabled: Bool, limit: Int
    ) async throws(AccountError) -> [UserRecord] {
        if let outage { throw outage }
        let found = records.value.values.filter { $0.key > start && ($0.isDisabled || !onlyDisabled) }
        return Array(found.sorted { $0.key < $1.key }.prefix(limit))
    }

    func record(for key: String) async throws(StoreError) -> UserRecord? {
        if let outage { throw StoreError(code: outage.code, message: outage.message) }
        return records.value[key]
    }
    func replaceHash(of key: String, from old: String, to new: String) async throws(StoreError) -> Bool { false }
    func removeRecord(for key: String) async throws(StoreError) -> Bool {
        records.withLock { $0.removeValue(forKey: key) } != nil
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

/// A store and its administration.
private struct Office {
    let accounts: FewAccounts
    let sessions: EndedSessions?
    let store = MemoryStore(clock: .system)
    /// The subjects whose cached decisions were invalidated.
    let forgotten: Box<[String]>
    let administration: UserAdministration

    init(
        accounts: FewAccounts = FewAccounts(subjects: ["password:ann": "usr_1"]),
        sessions: EndedSessions? = EndedSessions(), maker: LenientMaker = LenientMaker()
    ) {
        self.accounts = accounts
        self.sessions = sessions
        let forgotten = Box<[String]>([])
        self.forgotten = forgotten
        let fence = LoginFence(store: store, keyPrefix: "test:")
        administration = UserAdministration(
            accounts: accounts, maker: maker, provider: "password", clock: .system,
            ending: sessions.map { sessions in
                SessionEnding(sessions: sessions, fence: fence) { subject in
                    forgotten.withLock { $0.append(subject) }
                }
            })
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
        let office = Office()
        #expect(try await office.said(.list) == [])
        #expect(try await office.said(.add, "Ann") == ["user 'ann' added"])
        #expect(try await office.said(.add, "bob") == ["user 'bob' added"])
        #expect(try await office.said(.list) == ["Ann\tactive", "bob\tactive"])
        #expect(try await office.said(.disable, "BOB") == ["user 'bob' disabled"])
        #expect(try await office.said(.list) == ["Ann\tactive", "bob\tdisabled"])
        #expect(try await office.said(.enable, "bob") == ["user 'bob' enabled"])
        #expect(office.accounts.all["bob"]?.isDisabled == false && office.sessions?.ended == [])
        #expect(
            try await office.said(.passwd, "ann", password: "other")
                == ["password of user 'ann' changed", "all sessions of the user ended"])
        #expect(office.accounts.all["ann"]?.hash == "other" && office.accounts.all["ann"]?.name == "Ann")
    }

    @Test(arguments: [UserAdministration.Action.passwd, .disable])
    func `invalidates a login in progress`(action: UserAdministration.Action) async throws {
        let office = Office()
        _ = try await office.said(.add, "ann")
        let fence = LoginFence(store: office.store, keyPrefix: "test:")
        let start = try await fence.start()
        #expect(!(try await fence.wasOvertaken(start, "usr_1", provider: "password")))
        _ = try await office.said(action, "ann")
        #expect(try await fence.wasOvertaken(start, "usr_1", provider: "password"))
        #expect(!(try await fence.wasOvertaken(try await fence.start(), "usr_1", provider: "password")))
    }

    @Test func `ends every session of the account when the password changes or the user is disabled`() async throws {
        let office = Office()
        _ = try await office.said(.add, "ann")
        _ = try await office.said(.disable, "ann")
        _ = try await office.said(.passwd, "ann")
        #expect(office.sessions?.ended == ["usr_1", "usr_1"] && office.forgotten.value == ["usr_1", "usr_1"])
    }

    @Test func `reports that sessions stay valid if they are not shared`() async throws {
        let office = Office(sessions: nil)
        _ = try await office.said(.add, "ann")
        #expect(try await office.said(.disable, "ann").last?.hasPrefix("note: ") == true)
        #expect(try await office.said(.enable, "ann").count == 1)
    }

    @Test func `rejects invalid actions as wrong usage, without reading a password`() async throws {
        let office = Office()
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
        #expect(office.accounts.all["ann"]?.hash == "secret")
    }

    @Test func `distinguishes outages from wrong usage`() async throws {
        let outage = AccountError("accounts.timeout", .unavailable, "no reply")
        let down = Office(accounts: FewAccounts(outage: outage))
        for action in UserAdministration.Action.allCases where action != .unlock {
            let failure = await down.failure(action, "ann")
            #expect(failure?.0 == "accounts.timeout" && failure?.1 == .unavailable)
        }
        let rows: [(AuthenticationError, ExitCode)] = [
            (.malformed("x.y"), .usage), (AuthenticationError("x.y", .notFound), .configuration),
            (.unavailable("x.y"), .internalFault),
        ]
        for (error, exit) in rows {
            let failure = await Office(maker: LenientMaker(failure: error)).failure(.add, "ann")
            #expect(failure?.0 == "x.y" && failure?.1 == exit)
        }
    }

    @Test func `deletes a user, ends the sessions, and says what is left of the account`() async throws {
        let office = Office()
        for name in ["ann", "bob"] { _ = try await office.said(.add, name) }
        let lines = try await office.said(.delete, "ANN")
        #expect(lines.first == "user 'ann' deleted" && lines.last == "all sessions of the user ended")
        #expect(lines.count == 3 && lines[1].contains("only identity of account usr_1"))
        #expect(office.sessions?.ended == ["usr_1"] && office.forgotten.value == ["usr_1"])
        #expect(try await office.said(.delete, "bob") == ["user 'bob' deleted"])
        #expect(try await office.said(.list) == [])
        let again = await office.failure(.delete, "ann")
        #expect(again?.0 == "user.unknown" && again?.1 == .usage)
    }

    @Test func `shows a user with the account`() async throws {
        let office = Office()
        for name in ["Ann", "bob"] { _ = try await office.said(.add, name) }
        #expect(try await office.said(.show, "ann") == ["Ann\tactive\taccount usr_1"])
        #expect(try await office.said(.show, "bob") == ["bob\tactive\tno account yet"])
        let shown = try await office.administration.perform(.show, name: "ann") { Secret("") }
        #expect(
            shown.json == ["name": "ann", "display_name": "Ann", "state": "active", "subject": "usr_1"])
        let disabled = try await office.administration.perform(.disable, name: "ann") { Secret("") }
        #expect(disabled.json == ["name": "ann", "action": "disabled", "sessions": "ended"])
    }

    @Test func `lists users in pages, and the disabled ones`() async throws {
        let office = Office()
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
        let office = Office()
        let failure = await office.failure(.unlock, "ann")
        #expect(failure?.0 == "user.store_not_shared" && failure?.1 == .configuration)
    }

    @Test func `reports a change whose sessions could not be ended`() async throws {
        let office = Office(sessions: EndedSessions(outage: SessionError("session.store_down", .unavailable)))
        _ = try await office.said(.add, "ann")
        let failure = await office.failure(.disable, "ann")
        #expect(failure?.0 == "session.store_down" && failure?.1 == .unavailable)
        #expect(office.accounts.all["ann"]?.isDisabled == true)
    }

    @Test func `prints no control characters of a name`() async throws {
        let office = Office()
        let user = UserRecord(name: "a\u{1B}[2J\nb", key: "a", hash: "", isDisabled: false)
        try await office.accounts.addUser(user, at: UnixTime(seconds: 0))
        #expect(try await office.said(.list) == ["a?[2J?b\tactive"])
    }
}
