internal import MartletCore
internal import MartletCrypto
internal import MartletEvents
internal import MartletJSON

/// The account operations, as queries and transaction steps that both engines run.
struct IdentityRules: Sendable {
    let dialect: Dialect
    let recorder: EventRecorder
    let logger: Logger

    /// Finds the account for a sign-in that changes nothing; `nil` if the store has to be changed.
    func findUnchanged(_ identity: AccountIdentity, _ claims: LoginClaims) -> ReadOperation<Account?> {
        ReadOperation(queries: subjectQueries(identity, .findSubject)) { results throws(AccountError) in
            let binding = try IdentityBinding(identity, results)
            guard let owner = binding.owner, binding.isUpToDate,
                claims.changes(of: owner).isEmpty
            else { return nil }
            warnOfConflict(binding, of: identity)
            return owner.existing()
        }
    }

    /// Finds the account of an identity.
    func find(_ identity: AccountIdentity) -> ReadOperation<Account?> {
        ReadOperation(queries: subjectQueries(identity, .findSubject)) { results throws(AccountError) in
            try IdentityBinding(identity, results).owner?.existing()
        }
    }

    /// Creates the account, or adds new subjects and claims to it.
    func signIn(
        _ identity: AccountIdentity, _ claims: LoginClaims, issuedAt: UnixTime?, at now: UnixTime,
        as ids: NewIdentifiers, _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<Account> {
        let locks = locks(identity)
        let queries = subjectQueries(identity, .lockSubject) + subjectQueries(identity, ProofStatement.findDeparture)
        return .run(locks + queries) { results throws(AccountError) in
            let binding = try IdentityBinding(identity, results, from: locks.count)
            warnOfConflict(binding, of: identity)
            guard let owner = binding.owner else {
                for index in identity.subjects.indices {
                    let row = results[locks.count + identity.subjects.count + index].first
                    if let issuedAt, let row, issuedAt.mayPrecede(milliseconds: try row.integer(0)) { throw .departed }
                }
                let merged = StoredClaims.merged([:], claims.stored) ?? [:]
                let layers = claims.layers()
                let account = Account(subject: ids.account, storedClaims: merged, isNew: true, hasClaims: layers != nil)
                let queries =
                    insertAccount(account, at: now) + insertIdentity(identity, to: account.subject, at: now, ids)
                    + (layers.map { AccountStore.store($0, of: account.subject) } ?? [])
                    + event(.accountCreated, of: account.subject, identity.provider, stamp)
                return .commit(queries) { _ in account }
            }
            let changes = claims.changes(of: owner)
            let account = owner.existing(changes)
            return .commit(updateIdentity(binding, owner, identity.provider, changes)) { _ in account }
        }
    }

    /// Binds an identity to an existing account.
    func link(
        _ identity: AccountIdentity, to subject: String, askedBySessionOf start: UnixTime?, keeping claims: JSONObject,
        at now: UnixTime, as ids: NewIdentifiers, _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<Void> {
        let locks = locks(identity)
        let own = [Query(.lockAccount, .text(subject)), Query(.lockIdentities, .text(subject))]
        return .run(locks + subjectQueries(identity, .lockSubject) + own) { results throws(AccountError) in
            let end = locks.count + identity.subjects.count
            guard let row = results[end].first else { throw .unknownAccount }
            // The sessions of a reclaimed account end a moment after it was reclaimed.
            if let start, let reclaimed = try row.optionalInteger(1), start.mayPrecede(milliseconds: reclaimed) {
                throw .reclaimed
            }
            let binding = try IdentityBinding(identity, results, from: locks.count)
            if let owner = binding.owner {
                guard owner.account.hasSameBytes(as: subject) else { throw .boundElsewhere }
                warnOfConflict(binding, of: identity)
                let changes = LoginClaims(stored: claims).changes(of: owner)
                return .commit(updateIdentity(binding, owner, identity.provider, changes)) { _ in }
            }
            for other in results[end + 1] where try other.text(2).hasSameBytes(as: identity.provider) {
                throw .providerTaken
            }
            var queries =
                insertIdentity(identity, to: subject, at: now, ids)
                + event(.identityLinked, of: subject, identity.provider, stamp)
            if let merged = StoredClaims.merged(try StoredClaims.read(row.text(0)), claims) {
                queries.append(Query(.setStoredClaims, .text(subject), .text(StoredClaims.write(merged))))
            }
            return .commit(queries) { _ in }
        }
    }

    /// Unbinds an identity, unless it is the last one.
    func unlink(
        provider: String, from subject: String, _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<AccountIdentity> {
        let queries = [Query(.lockAccount, .text(subject)), Query(.lockIdentities, .text(subject))]
        return .run(queries) { results throws(AccountError) in
            guard !results[0].isEmpty else { throw .unknownAccount }
            let identities = try ListedIdentity.read(results[1])
            guard let found = identities.first(where: { $0.identity.provider.hasSameBytes(as: provider) }) else {
                throw .notLinked
            }
            guard identities.count > 1 else { throw .lastIdentity }
            // Claims of the identity go with it.
            let departures = found.identity.subjects.map {
                Query(ProofStatement.noteDeparture, .text(provider), .text($0), .integer(stamp.time))
            }
            let removal =
                departures + [Query(.removeIdentity, .text(found.id)), Query(.countClaimsRemoval, .text(subject))]
            return .commit(removal + event(.identityUnlinked, of: subject, provider, stamp)) { _ in found.identity }
        }
    }

    /// Lists an account's identities, oldest first.
    func identities(of subject: String) -> ReadOperation<[AccountIdentity]> {
        ReadOperation(queries: [Query(.identities, .text(subject))]) { results throws(AccountError) in
            try ListedIdentity.read(results[0]).map(\.identity)
        }
    }

    /// Lists an account's identities with their times.
    func linkedIdentities(of subject: String) -> ReadOperation<[LinkedIdentity]> {
        ReadOperation(queries: [Query(.identities, .text(subject))]) { results throws(AccountError) in
            try ListedIdentity.read(results[0]).map { listed in
                LinkedIdentity(
                    provider: listed.identity.provider, linkedAt: listed.linkedAt, lastLoginAt: listed.lastLoginAt)
            }
        }
    }

    /// Records a login, and an address that differs from that of the login before.
    /// - Returns: whether an event may have been recorded.
    func noteLogin(
        of subject: String, with provider: String, email: EmailAddress?, at now: UnixTime,
        _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<Bool> {
        let note = Query(.noteLogin, .text(subject), .text(provider), .integer(now.seconds))
        guard let email else { return .commit([note]) { _ in false } }
        return .run([Query(.lockEmail, .text(subject), .text(provider))]) { results throws(AccountError) in
            guard let row = results[0].first else { return .end(false) }
            let id = try row.text(0)
            let (known, digest) = (try row.optionalText(1), Self.digest(of: email, identity: id))
            let isLatest = try row.optionalInteger(2).map { $0 <= now.seconds } ?? true
            guard isLatest, known.map({ !$0.hasSameBytes(as: digest) }) ?? true else {
                return .commit([note]) { _ in false }
            }
            let queries = [note, Query(.setEmail, .text(id), .text(digest))]
            guard known != nil else { return .commit(queries) { _ in false } }
            return .commit(queries + event(.emailChanged, of: subject, provider, stamp)) { _ in true }
        }
    }

    /// What is stored of an address: enough to notice another one. The identity is a part of it, so that digests do not
    /// show which accounts share an address.
    private static func digest(of email: EmailAddress, identity: String) -> String {
        Base64URL.encode(SHA256.digest(Array("martlet email \(identity) \(email.text)".utf8)))
    }
}

// MARK: - Queries

extension IdentityRules {
    private func subjectQueries(_ identity: AccountIdentity, _ statement: Statement) -> [Query] {
        identity.subjects.map { Query(statement, .text(identity.provider), .text($0)) }
    }

    /// Advisory locks on the names of the subjects, because unbound subjects have no rows to lock; sorted to avoid
    /// deadlocks.
    private func locks(_ identity: AccountIdentity) -> [Query] {
        guard dialect == .postgresql else { return [] }
        let texts = identity.subjects.map { "\(identity.provider)\n\($0)" }
        let ordered = texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        return ordered.map { Query(.lock, .text($0)) }
    }

    private func event(
        _ type: EventType, of subject: String, _ provider: String, _ stamp: EventRecorder.Stamp
    ) -> [Query] {
        recorder.queries(type, of: subject, stamp, data: ["provider": .string(provider)])
    }

    private func insertAccount(_ account: Account, at now: UnixTime) -> [Query] {
        let claims = StoredClaims.write(account.storedClaims)
        return [Query(.addAccount, .text(account.subject), .integer(now.seconds), .text(claims))]
    }

    private func insertIdentity(
        _ identity: AccountIdentity, to account: String, at now: UnixTime, _ ids: NewIdentifiers
    ) -> [Query] {
        let main = identity.subjects.first ?? ""
        let provider = Query.Value.text(identity.provider)
        let row = Query(.addIdentity, .text(ids.identity), .text(account), provider, .text(main), .integer(now.seconds))
        return [row] + identity.subjects.map { Query(.addSubject, provider, .text($0), .text(ids.identity)) }
    }

    private func updateIdentity(
        _ binding: IdentityBinding, _ owner: BoundSubject, _ provider: String, _ changes: LoginClaims.Changes
    ) -> [Query] {
        var queries = binding.newSubjects.map {
            Query(.addSubject, .text(provider), .text($0), .text(owner.identity))
        }
        if let main = binding.promoted { queries.append(Query(.setMainSubject, .text(owner.identity), .text(main))) }
        return queries + changes.queries(of: owner.account)
    }

    private func warnOfConflict(_ binding: IdentityBinding, of identity: AccountIdentity) {
        guard let owner = binding.owner, let other = binding.otherAccounts.first else { return }
        logger.warning(
            "identity matches two accounts", ("provider", identity.provider),
            ("account", owner.account), ("other", other))
    }
}

struct ListedIdentity: Sendable {
    let id: String
    let identity: AccountIdentity
    let linkedAt: UnixTime
    let lastLoginAt: UnixTime?

    /// Decodes the rows of `identities`: one for each subject, grouped by identity.
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
                    linkedAt: try row.time(4),
                    lastLoginAt: try row.optionalTime(5)))
        }
        return list
    }
}

/// Identifiers for a new account and a new identity.
struct NewIdentifiers: Sendable {
    let account: String
    let identity: String

    /// Creates identifiers of 160 random bits each.
    /// - Throws: `accounts.failed` if no random bytes are available.
    init() throws(AccountError) {
        account = "usr_" + (try NewIdentifiers.random())
        identity = "idn_" + (try NewIdentifiers.random())
    }

    /// 20 random bytes as lowercase base32.
    private static func random() throws(AccountError) -> String {
        guard let bytes = try? RandomBytes.make(20) else {
            throw .unavailable(.accountsFailed, "no random bytes available")
        }
        return Base32.encode(bytes, in: .lowercase)
    }
}
