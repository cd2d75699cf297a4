internal import MartletCore
internal import MartletJSON

/// The account store on either engine.
struct AccountStore: AccountStoring {
    let engine: any AccountEngine
    let clock: Clock
    private let rules: IdentityRules

    init(_ engine: any AccountEngine, clock: Clock, logger: Logger) {
        self.engine = engine
        self.clock = clock
        rules = IdentityRules(dialect: engine.dialect, logger: logger)
    }

    var health: AccountHealth { engine.health }

    func start() async throws(AccountError) { try await engine.start() }
    func shutdown() async { await engine.shutdown() }

    func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, at now: UnixTime
    ) async throws(AccountError) -> Account {
        let identity = try TextRules.checked(identity)
        if let account = try await engine.read(rules.findUnchanged(identity, keeping: claims)) { return account }
        return try await engine.transact(rules.signIn(identity, keeping: claims, at: now, as: try NewIdentifiers()))
    }

    func find(_ identity: AccountIdentity) async throws(AccountError) -> Account? {
        try await engine.read(rules.find(try TextRules.checked(identity)))
    }

    func link(
        _ identity: AccountIdentity, to subject: String, keeping claims: JSONObject, at now: UnixTime
    ) async throws(AccountError) {
        let identity = try TextRules.checked(identity)
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        try await engine.transact(
            rules.link(identity, to: subject, keeping: claims, at: now, as: try NewIdentifiers()))
    }

    func unlink(provider: String, from subject: String) async throws(AccountError) -> AccountIdentity {
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        guard TextRules.isKey(provider) else { throw .notLinked }
        return try await engine.transact(rules.unlink(provider: provider, from: subject))
    }

    func identities(of subject: String) async throws(AccountError) -> [AccountIdentity] {
        guard TextRules.isKey(subject) else { return [] }
        return try await engine.read(rules.identities(of: subject))
    }

    func linkedIdentities(of subject: String) async throws(AccountError) -> [LinkedIdentity] {
        guard TextRules.isKey(subject) else { return [] }
        return try await engine.read(rules.linkedIdentities(of: subject))
    }

    func noteLogin(of subject: String, with provider: String, at now: UnixTime) async throws(AccountError) {
        guard TextRules.isKey(subject), TextRules.isKey(provider) else { return }
        try await engine.transact(rules.noteLogin(of: subject, with: provider, at: now))
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
        return AccountIdentity(provider: identity.provider, subjects: subjects)
    }
}
