package import MartletCore
internal import MartletEvents
package import MartletJSON
package import MartletProvider

/// An account store: SQLite or PostgreSQL, with the same semantics. It has the outbox in the same database, so that a
/// change and its event are one transaction.
package struct AccountStore: AccountStoring {
    let engine: any AccountEngine
    let clock: Clock
    let recorder = EventRecorder()
    /// The state of its identities.
    package let life: IdentityLifeStore
    /// Transfers of its identities.
    package let transfers: IdentityTransferStore
    private let rules: IdentityRules

    init(_ engine: any AccountEngine, clock: Clock, logger: Logger) {
        self.engine = engine
        self.clock = clock
        life = IdentityLifeStore(engine, recorder)
        transfers = IdentityTransferStore(engine, recorder)
        rules = IdentityRules(dialect: engine.dialect, recorder: recorder, logger: logger)
    }

    /// The health of the store, for `/readyz` and metrics.
    package var health: AccountHealth { engine.health }

    /// Opens the store and migrates its schema.
    ///
    /// If PostgreSQL is unreachable, connecting continues in the background; the caller may proceed without the store.
    /// - Throws: `unavailable`.
    package func start() async throws(AccountError) { try await engine.start() }

    /// Closes the store; pending calls fail.
    package func shutdown() async { await engine.shutdown() }

    /// Finds the account of an identity, or creates it.
    ///
    /// Concurrent calls create one account. New aliases of a known identity are bound to its account; an alias that is
    /// already bound to another account stays there. Claims are stored when first seen and never replaced.
    /// - Parameters:
    ///   - ruleClaims: claims that rules of the configuration give the account; an operator's win over them.
    ///   - issuedAt: when the credential was issued; `nil` if it is known to be new.
    /// - Throws: `outdated` if the identity has no account any more, and the credential may be older than that;
    ///   `unavailable`.
    package func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, setting ruleClaims: JSONObject = [:],
        issuedAt: UnixTime? = nil, at now: UnixTime
    ) async throws(AccountError) -> Account {
        let identity = try TextRules.checked(identity)
        let new = LoginClaims(stored: claims, rules: ruleClaims)
        if let account = try await engine.read(rules.findUnchanged(identity, new)) { return account }
        let (ids, stamp) = (try NewIdentifiers(), try newStamp())
        let account = try await engine.transact(
            rules.signIn(identity, new, issuedAt: issuedAt, at: now, as: ids, stamp))
        if account.isNew { observers.signal() }
        return account
    }

    /// Finds the account of an identity; `nil` if there is none.
    package func find(_ identity: AccountIdentity) async throws(AccountError) -> Account? {
        try await engine.read(rules.find(try TextRules.checked(identity)))
    }

    /// Binds an identity to an account; idempotent.
    /// - Parameter start: when the session began that asks for it; `nil` if no session does.
    /// - Throws: `identityTaken`, `providerAlreadyLinked`, `notFound` if the account does not exist, `outdated` if the
    ///   account was reclaimed since the session began, `unavailable`.
    package func link(
        _ identity: AccountIdentity, to subject: String, askedBySessionOf start: UnixTime? = nil,
        keeping claims: JSONObject, at now: UnixTime
    ) async throws(AccountError) {
        let identity = try TextRules.checked(identity)
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        let (ids, stamp) = (try NewIdentifiers(), try newStamp())
        try await engine.transact(
            rules.link(identity, to: subject, askedBySessionOf: start, keeping: claims, at: now, as: ids, stamp))
        observers.signal()
    }

    /// Unbinds an account's identity of one provider and returns it.
    /// - Throws: `notFound`, `lastIdentity`, `unavailable`.
    package func unlink(provider: String, from subject: String) async throws(AccountError) -> AccountIdentity {
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        guard TextRules.isKey(provider) else { throw .notLinked }
        let identity = try await engine.transact(rules.unlink(provider: provider, from: subject, try newStamp()))
        observers.signal()
        return identity
    }

    /// Lists an account's identities.
    package func identities(of subject: String) async throws(AccountError) -> [AccountIdentity] {
        guard TextRules.isKey(subject) else { return [] }
        return try await engine.read(rules.identities(of: subject))
    }

    /// Lists an account's identities with the times of linking and last login, oldest first; empty without such an
    /// account.
    package func linkedIdentities(of subject: String) async throws(AccountError) -> [LinkedIdentity] {
        guard TextRules.isKey(subject) else { return [] }
        return try await engine.read(rules.linkedIdentities(of: subject))
    }

    /// Records a login with an account's identity of one provider; the latest time wins, in any order of calls.
    /// - Parameter email: the address that the login brings; another one than before is recorded as an event.
    package func noteLogin(
        of subject: String, with provider: String, email: EmailAddress? = nil, at now: UnixTime
    ) async throws(AccountError) {
        guard TextRules.isKey(subject), TextRules.isKey(provider) else { return }
        let step = rules.noteLogin(of: subject, with: provider, email: email, at: now, try newStamp())
        if try await engine.transact(step) { observers.signal() }
    }

    /// The API keys of a provider, by its name in `providers:`.
    package func keys(of provider: String) -> any APIKeyStoring { KeyStore(engine: engine, provider: provider) }

    /// The stamp of an event that happens now.
    func newStamp() throws(AccountError) -> EventRecorder.Stamp {
        try EventRecorder.Stamp(at: clock.unixMilliseconds)
    }
}

/// Limits on text that both databases store, compare and index alike.
enum TextRules {
    /// The maximum size of a subject, a provider name or a user name; a PostgreSQL index entry contains two of them.
    static let maximumBytes = 1024
    /// The maximum number of subjects of one identity.
    static let maximumSubjects = 16

    static func isKey(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= maximumBytes && !text.utf8.contains(0)
    }

    /// Validates an identity and removes duplicate subjects.
    /// - Throws: `accounts.text_invalid`.
    static func checked(_ identity: AccountIdentity) throws(AccountError) -> AccountIdentity {
        guard isKey(identity.provider), (1...maximumSubjects).contains(identity.subjects.count),
            identity.subjects.allSatisfy(isKey)
        else { throw .textInvalid }
        var subjects: [String] = []
        for subject in identity.subjects where !subjects.contains(where: { $0.hasSameBytes(as: subject) }) {
            subjects.append(subject)
        }
        return AccountIdentity(provider: identity.provider, subjects: subjects, aliasesDecide: identity.aliasesDecide)
    }
}
