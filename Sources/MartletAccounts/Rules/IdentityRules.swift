internal import MartletCore
internal import MartletCrypto
internal import MartletJSON

/// The rules of accounts, as steps of a transaction.
struct IdentityRules: Sendable {
    let dialect: Dialect
    let logger: Logger

    /// What a sign-in found without changing anything; `nil` when something has to be changed.
    func known(_ identity: AccountIdentity, keeping claims: JSONObject) -> Reading<Account?> {
        Reading(queries: asked(identity, .findSubject)) { answers throws(AccountError) in
            let binding = try IdentityBinding(identity.subjects, answers)
            guard let owner = binding.owner, binding.isUpToDate,
                KeptClaims.merged(owner.keptClaims, claims) == nil
            else { return nil }
            warn(binding, of: identity)
            return Account(subject: owner.account, keptClaims: owner.keptClaims, isNew: false)
        }
    }

    /// The account of an identity.
    func find(_ identity: AccountIdentity) -> Reading<Account?> {
        Reading(queries: asked(identity, .findSubject)) { answers throws(AccountError) in
            try IdentityBinding(identity.subjects, answers).owner.map {
                Account(subject: $0.account, keptClaims: $0.keptClaims, isNew: false)
            }
        }
    }

    /// Makes the account, or adds to it what is new.
    func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, at now: UnixTime, as names: NewNames
    ) -> Step<Account> {
        let locks = locks(identity)
        return .run(locks + asked(identity, .claimSubject)) { answers throws(AccountError) in
            let binding = try IdentityBinding(identity.subjects, answers, from: locks.count)
            warn(binding, of: identity)
            guard let owner = binding.owner else {
                let kept = KeptClaims.merged([:], claims) ?? [:]
                let account = Account(subject: names.account, keptClaims: kept, isNew: true)
                return .commit(making(account, at: now) + adding(identity, to: account.subject, at: now, names)) { _ in
                    account
                }
            }
            let kept = KeptClaims.merged(owner.keptClaims, claims)
            let account = Account(subject: owner.account, keptClaims: kept ?? owner.keptClaims, isNew: false)
            return .commit(completing(binding, owner, identity.provider, kept)) { _ in account }
        }
    }

    /// Binds an identity to an account that is there.
    func link(
        _ identity: AccountIdentity, to subject: String, keeping claims: JSONObject, at now: UnixTime,
        as names: NewNames
    ) -> Step<Void> {
        let locks = locks(identity)
        let own = [Query(.claimAccount, .text(subject)), Query(.claimIdentities, .text(subject))]
        return .run(locks + asked(identity, .claimSubject) + own) { answers throws(AccountError) in
            let end = locks.count + identity.subjects.count
            guard let row = answers[end].first else { throw .unknownAccount }
            let binding = try IdentityBinding(identity.subjects, answers, from: locks.count)
            if let owner = binding.owner {
                guard owner.account.hasSameBytes(as: subject) else { throw .boundElsewhere }
                warn(binding, of: identity)
                let kept = KeptClaims.merged(owner.keptClaims, claims)
                return .commit(completing(binding, owner, identity.provider, kept)) { _ in }
            }
            for other in answers[end + 1] where try other.text(2).hasSameBytes(as: identity.provider) {
                throw .providerTaken
            }
            var queries = adding(identity, to: subject, at: now, names)
            if let kept = KeptClaims.merged(try KeptClaims.read(row.text(0)), claims) {
                queries.append(Query(.setKeptClaims, .text(subject), .text(KeptClaims.write(kept))))
            }
            return .commit(queries) { _ in }
        }
    }

    /// Unbinds an identity, unless it is the last one.
    func unlink(provider: String, from subject: String) -> Step<AccountIdentity> {
        let queries = [Query(.claimAccount, .text(subject)), Query(.claimIdentities, .text(subject))]
        return .run(queries) { answers throws(AccountError) in
            guard !answers[0].isEmpty else { throw .unknownAccount }
            let identities = try ListedIdentity.read(answers[1])
            guard let found = identities.first(where: { $0.identity.provider.hasSameBytes(as: provider) }) else {
                throw .notLinked
            }
            guard identities.count > 1 else { throw .lastIdentity }
            return .commit([Query(.removeIdentity, .text(found.id))]) { _ in found.identity }
        }
    }

    /// An account's identities, the oldest first.
    func identities(of subject: String) -> Reading<[AccountIdentity]> {
        Reading(queries: [Query(.identities, .text(subject))]) { answers throws(AccountError) in
            try ListedIdentity.read(answers[0]).map(\.identity)
        }
    }

    /// The same as their owner is shown them.
    func linkedIdentities(of subject: String) -> Reading<[LinkedIdentity]> {
        Reading(queries: [Query(.identities, .text(subject))]) { answers throws(AccountError) in
            try ListedIdentity.read(answers[0]).map { listed in
                LinkedIdentity(
                    provider: listed.identity.provider, linkedAt: listed.linkedAt, lastLoginAt: listed.lastLoginAt)
            }
        }
    }

    /// Notes a login.
    func noteLogin(of subject: String, with provider: String, at now: UnixTime) -> Step<Void> {
        .commit([Query(.noteLogin, .text(subject), .text(provider), .integer(now.seconds))]) { _ in }
    }
}

// MARK: - Queries

extension IdentityRules {
    private func asked(_ identity: AccountIdentity, _ statement: Statement) -> [Query] {
        identity.subjects.map { Query(statement, .text(identity.provider), .text($0)) }
    }

    /// Subjects that nobody has cannot be locked as rows: their names are, in one order for all.
    private func locks(_ identity: AccountIdentity) -> [Query] {
        guard dialect == .postgresql else { return [] }
        let texts = identity.subjects.map { "\(identity.provider)\n\($0)" }
        let ordered = texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        return ordered.map { Query(.lock, .text($0)) }
    }

    private func making(_ account: Account, at now: UnixTime) -> [Query] {
        let claims = KeptClaims.write(account.keptClaims)
        return [Query(.addAccount, .text(account.subject), .integer(now.seconds), .text(claims))]
    }

    private func adding(
        _ identity: AccountIdentity, to account: String, at now: UnixTime, _ names: NewNames
    ) -> [Query] {
        let main = identity.subjects.first ?? ""
        let provider = Query.Value.text(identity.provider)
        let row = Query(
            .addIdentity, .text(names.identity), .text(account), provider, .text(main), .integer(now.seconds))
        return [row] + identity.subjects.map { Query(.addSubject, provider, .text($0), .text(names.identity)) }
    }

    private func completing(
        _ binding: IdentityBinding, _ owner: KnownSubject, _ provider: String, _ kept: JSONObject?
    ) -> [Query] {
        var queries = binding.newSubjects.map {
            Query(.addSubject, .text(provider), .text($0), .text(owner.identity))
        }
        if let main = binding.promoted { queries.append(Query(.setMainSubject, .text(owner.identity), .text(main))) }
        if let kept {
            queries.append(Query(.setKeptClaims, .text(owner.account), .text(KeptClaims.write(kept))))
        }
        return queries
    }

    private func warn(_ binding: IdentityBinding, of identity: AccountIdentity) {
        guard let owner = binding.owner, let other = binding.otherAccounts.first else { return }
        logger.warning(
            "one identity is known by subjects of two accounts", ("provider", identity.provider),
            ("account", owner.account), ("other", other))
    }
}

/// One identity as the store lists it.
struct ListedIdentity: Sendable {
    let id: String
    let identity: AccountIdentity
    let linkedAt: UnixTime
    let lastLoginAt: UnixTime?

    /// Reads the rows of `identities`: one for each subject, together by identity.
    static func read(_ rows: [Row]) throws(AccountError) -> [ListedIdentity] {
        var list: [ListedIdentity] = []
        for row in rows {
            let (subject, id, provider, main) = (try row.text(0), try row.text(1), try row.text(2), try row.text(3))
            var subjects = [main]
            if let last = list.last, last.id.hasSameBytes(as: id) {
                subjects = last.identity.subjects
                list.removeLast()
            }
            if !subject.hasSameBytes(as: main) { subjects.append(subject) }
            list.append(
                ListedIdentity(
                    id: id, identity: AccountIdentity(provider: provider, subjects: subjects),
                    linkedAt: UnixTime(seconds: try row.integer(4)),
                    lastLoginAt: try row.optionalInteger(5).map { UnixTime(seconds: $0) }))
        }
        return list
    }
}

/// What an account and an identity will be called if they have to be made.
struct NewNames: Sendable {
    let account: String
    let identity: String

    /// Fresh ones, of 160 random bits each.
    /// - Throws: `accounts.failed` when the system has no entropy to give.
    init() throws(AccountError) {
        account = "usr_" + (try NewNames.random())
        identity = "idn_" + (try NewNames.random())
    }

    private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// 20 bytes as base32, in lower case.
    private static func random() throws(AccountError) -> String {
        guard let bytes = try? RandomBytes.make(20) else {
            throw .unavailable(.accountsFailed, "the system has no random bytes to give")
        }
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var held: UInt32 = 0
        for byte in bytes {
            bits = bits &<< 8 | UInt32(byte)
            held &+= 8
            while held >= 5 {
                held &-= 5
                text.append(alphabet[Int(bits &>> held & 31)])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
