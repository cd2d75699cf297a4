internal import MartletCore
internal import MartletEvents
internal import MartletJSON

/// The account store on either engine.
struct AccountStore: AccountStoring, IdentityLifeHolding, IdentityTransferHolding, APIKeyHolding {
    let engine: any AccountEngine
    let clock: Clock
    let recorder = EventRecorder()
    let life: any IdentityLifeStoring
    let transfers: any IdentityTransferStoring
    let keys: APIKeyStores
    private let rules: IdentityRules

    init(_ engine: any AccountEngine, clock: Clock, logger: Logger) {
        self.engine = engine
        self.clock = clock
        life = IdentityLifeStore(engine, recorder)
        transfers = IdentityTransferStore(engine, recorder)
        keys = APIKeyStores { KeyStore(engine: engine, provider: $0) }
        rules = IdentityRules(dialect: engine.dialect, recorder: recorder, logger: logger)
    }

    var health: AccountHealth { engine.health }

    func start() async throws(AccountError) { try await engine.start() }
    func shutdown() async { await engine.shutdown() }

    func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, setting ruleClaims: JSONObject, issuedAt: UnixTime?,
        at now: UnixTime
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

    func find(_ identity: AccountIdentity) async throws(AccountError) -> Account? {
        try await engine.read(rules.find(try TextRules.checked(identity)))
    }

    func link(
        _ identity: AccountIdentity, to subject: String, askedBySessionOf start: UnixTime?, keeping claims: JSONObject,
        at now: UnixTime
    ) async throws(AccountError) {
        let identity = try TextRules.checked(identity)
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        let (ids, stamp) = (try NewIdentifiers(), try newStamp())
        try await engine.transact(
            rules.link(identity, to: subject, askedBySessionOf: start, keeping: claims, at: now, as: ids, stamp))
        observers.signal()
    }

    func unlink(provider: String, from subject: String) async throws(AccountError) -> AccountIdentity {
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        guard TextRules.isKey(provider) else { throw .notLinked }
        let identity = try await engine.transact(rules.unlink(provider: provider, from: subject, try newStamp()))
        observers.signal()
        return identity
    }

    func identities(of subject: String) async throws(AccountError) -> [AccountIdentity] {
        guard TextRules.isKey(subject) else { return [] }
        return try await engine.read(rules.identities(of: subject))
    }

    func linkedIdentities(of subject: String) async throws(AccountError) -> [LinkedIdentity] {
        guard TextRules.isKey(subject) else { return [] }
        return try await engine.read(rules.linkedIdentities(of: subject))
    }

    func noteLogin(
        of subject: String, with provider: String, email: EmailAddress?, at now: UnixTime
    ) async throws(AccountError) {
        guard TextRules.isKey(subject), TextRules.isKey(provider) else { return }
        let step = rules.noteLogin(of: subject, with: provider, email: email, at: now, try newStamp())
        if try await engine.transact(step) { observers.signal() }
    }

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
        return AccountIdentity(
            provider: identity.provider, subjects: subjects, aliasesDecide: identity.aliasesDecide)
    }
}
