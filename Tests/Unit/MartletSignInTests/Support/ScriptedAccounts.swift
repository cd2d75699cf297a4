import MartletAccounts
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting

/// Accounts in memory that can become unavailable, for all calls or from the n-th on.
final class ScriptedAccounts: AccountStoring {
    fileprivate struct Entry {
        var subject: String
        var identities: [AccountIdentity]
        var kept: JSONObject
    }

    fileprivate struct State {
        /// The canonical names of password users.
        var users: Set<String> = []
        var entries: [Entry] = []
        var serial = 0
        var callsLeft = Int.max
    }

    private let state = Box(State())

    /// How many more calls succeed before the store is unavailable.
    var callsLeft: Int {
        get { state.value.callsLeft }
        set { state.withLock { $0.callsLeft = newValue } }
    }

    let health = AccountHealth(state: .ready)

    func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, setting rules: JSONObject, issuedAt: UnixTime?,
        at now: UnixTime
    ) async throws(AccountError) -> Account {
        try count()
        return state.withLock { state in
            if let index = state.entries.firstIndex(where: { $0.holds(identity) }) {
                state.entries[index].keep(claims)
                let entry = state.entries[index]
                return Account(subject: entry.subject, storedClaims: entry.kept, isNew: false)
            }
            state.serial += 1
            let entry = Entry(subject: "usr_\(state.serial)", identities: [identity], kept: claims)
            state.entries.append(entry)
            return Account(subject: entry.subject, storedClaims: claims, isNew: true)
        }
    }

    func find(_ identity: AccountIdentity) async throws(AccountError) -> Account? {
        try count()
        return state.value.entries.first { $0.holds(identity) }
            .map { Account(subject: $0.subject, storedClaims: $0.kept, isNew: false) }
    }

    func account(_ subject: String) async throws(AccountError) -> AccountRecord? {
        try count()
        return state.value.entries.first { $0.subject == subject }.map {
            AccountRecord(
                subject: subject, createdAt: UnixTime(seconds: 1), disabledAt: nil, storedClaims: $0.kept)
        }
    }

    func link(
        _ identity: AccountIdentity, to subject: String, askedBySessionOf start: UnixTime? = nil,
        keeping claims: JSONObject, at now: UnixTime
    ) async throws(AccountError) {
        try count()
        let error: AccountError? = state.withLock { state in
            guard let index = state.entries.firstIndex(where: { $0.subject == subject }) else {
                return AccountError("accounts.no_account", .notFound, "")
            }
            if state.entries[index].holds(identity) { return nil }
            if state.entries.contains(where: { $0.holds(identity) }) {
                return AccountError("accounts.bound_elsewhere", .identityTaken, "")
            }
            if state.entries[index].identities.contains(where: { $0.provider == identity.provider }) {
                return AccountError("accounts.provider_taken", .providerAlreadyLinked, "")
            }
            state.entries[index].identities.append(identity)
            state.entries[index].keep(claims)
            return nil
        }
        if let error { throw error }
    }

    func unlink(provider: String, from subject: String) async throws(AccountError) -> AccountIdentity {
        try count()
        let result: Result<AccountIdentity, AccountError> = state.withLock { state in
            guard let index = state.entries.firstIndex(where: { $0.subject == subject }),
                let position = state.entries[index].identities.firstIndex(where: { $0.provider == provider })
            else { return .failure(AccountError("accounts.not_linked", .notFound, "")) }
            guard state.entries[index].identities.count > 1 else {
                return .failure(AccountError("accounts.last_identity", .lastIdentity, ""))
            }
            return .success(state.entries[index].identities.remove(at: position))
        }
        return try result.get()
    }

    func identities(of subject: String) async throws(AccountError) -> [AccountIdentity] {
        try count()
        return state.value.entries.first { $0.subject == subject }?.identities ?? []
    }

    func linkedIdentities(of subject: String) async throws(AccountError) -> [LinkedIdentity] {
        try count()
        let logins = logins.value
        return state.value.entries.first { $0.subject == subject }?.identities.map { identity in
            LinkedIdentity(
                provider: identity.provider, linkedAt: UnixTime(seconds: 1),
                lastLoginAt: logins["\(subject) \(identity.provider)"])
        } ?? []
    }

    func noteLogin(
        of subject: String, with provider: String, email: EmailAddress?, at now: UnixTime
    ) async throws(AccountError) {
        if cannotRecord.value { throw AccountError("accounts.busy", .unavailable, "") }
        logins.withLock { $0["\(subject) \(provider)"] = now }
    }

    func claims(of subject: String) async throws(AccountError) -> VersionedClaims { .none }
    func profile(of subject: String) async throws(AccountError) -> JSONObject {
        try count()
        return [:]
    }
    func changeProfile(of subject: String, by patch: ProfilePatch) async throws(AccountError) -> JSONObject {
        try count()
        return patch.changes
    }

    /// When each identity of each account was last used for a login.
    private let logins = Box<[String: UnixTime]>([:])
    let cannotRecord = Box(false)

    private func count() throws(AccountError) {
        let isUnavailable = state.withLock { state in
            state.callsLeft -= 1
            return state.callsLeft < 0
        }
        if isUnavailable { throw AccountError("accounts.unavailable", .unavailable, "") }
    }

    func addUser(_ user: UserRecord, at now: UnixTime) async throws(AccountError) {
        try count()
        guard state.withLock({ $0.users.insert(user.key).inserted }) else {
            throw AccountError(.accountsDuplicateUser, .duplicateUser, "")
        }
    }
}

extension ScriptedAccounts.Entry {
    fileprivate func holds(_ identity: AccountIdentity) -> Bool {
        identities.contains {
            $0.provider == identity.provider && $0.subjects.contains(where: identity.subjects.contains)
        }
    }

    fileprivate mutating func keep(_ claims: JSONObject) {
        for member in claims.members where kept[member.name] == nil { kept[member.name] = member.value }
    }
}
