internal import MartletCore
internal import MartletJSON

/// A stored subject with its identity and account.
struct BoundSubject: Sendable {
    let subject: String
    let identity: String
    let account: String
    /// The identity's main subject.
    let mainSubject: String
    let storedClaims: JSONObject
    let isDisabled: Bool
    /// When the identity was revoked, in milliseconds since 1970.
    let revokedAt: Int64?
    let isBeingDeleted: Bool
    let hasClaims: Bool
    let claims: ClaimLayers

    /// Decodes a row of `findSubject`.
    init(_ row: Row) throws(AccountError) {
        subject = try row.text(0)
        identity = try row.text(1)
        account = try row.text(2)
        mainSubject = try row.text(3)
        storedClaims = try StoredClaims.read(try row.text(4))
        isDisabled = try row.optionalInteger(5) != nil
        revokedAt = try row.optionalInteger(6)
        isBeingDeleted = try row.optionalInteger(7) != nil
        hasClaims = try row.integer(8) > 0
        claims = try ClaimLayers(
            operators: try row.optionalText(9), rules: try row.optionalText(10), profile: try row.optionalText(11))
    }

    /// The account.
    /// - Parameter changes: what a login changes.
    func existing(_ changes: LoginClaims.Changes = LoginClaims.Changes()) -> Account {
        Account(
            subject: account, storedClaims: changes.stored ?? storedClaims, isNew: false, isDisabled: isDisabled,
            revokedAt: revokedAt, isBeingDeleted: isBeingDeleted, hasClaims: hasClaims || changes.layers != nil)
    }
}

/// How an identity relates to the existing accounts: its owner and its new subjects.
///
/// The first known subject determines the owner. A subject that is bound to another identity stays there: a user who
/// turns out to have two accounts keeps both, because merging them needs the user's consent.
struct IdentityBinding: Sendable {
    /// The owner of the identity; `nil` if none of its subjects is known.
    let owner: BoundSubject?
    /// Subjects that are not bound yet.
    let newSubjects: [String]
    /// Accounts of other identities to which some of the subjects are bound.
    let otherAccounts: [String]
    /// The new main subject of the identity; `nil` if it does not change.
    let promoted: String?

    /// - Parameters:
    ///   - subjects: as reported by the provider, the main one first.
    ///   - results: of `findSubject`, one for each subject, starting at `offset`.
    init(_ subjects: [String], _ results: QueryResults, from offset: Int = 0) throws(AccountError) {
        var owner: BoundSubject?
        var newSubjects: [String] = []
        var otherAccounts: [String] = []
        for (index, subject) in subjects.enumerated() {
            guard let row = results[index + offset].first else {
                newSubjects.append(subject)
                continue
            }
            let known = try BoundSubject(row)
            if let owner {
                if !known.identity.hasSameBytes(as: owner.identity) { otherAccounts.append(known.account) }
            } else {
                owner = known
            }
        }
        self.owner = owner
        self.newSubjects = newSubjects
        self.otherAccounts = otherAccounts
        promoted = owner.flatMap { IdentityBinding.promotion(subjects, newSubjects, over: $0.mainSubject) }
    }

    /// Whether the store already contains the identity as reported.
    var isUpToDate: Bool { owner != nil && newSubjects.isEmpty && promoted == nil }

    /// The first subject, if it is new or precedes the current main subject.
    ///
    /// A login that reports an old alias alone must not change the order.
    private static func promotion(_ subjects: [String], _ newSubjects: [String], over main: String) -> String? {
        guard let first = subjects.first, !first.hasSameBytes(as: main) else { return nil }
        let isNew = newSubjects.first.map { $0.hasSameBytes(as: first) } ?? false
        return isNew || subjects.contains { $0.hasSameBytes(as: main) } ? first : nil
    }
}
