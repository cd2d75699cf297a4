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
    /// When the identity was revoked, or has left another account, in milliseconds since 1970.
    let revokedAt: Int64?
    /// When the requested deletion of the account is due, in milliseconds since 1970.
    let deletionDue: Int64?
    let hasClaims: Bool
    let claims: ClaimLayers

    /// Decodes a row of `findSubject`.
    init(_ row: Row) throws(AccountError) {
        subject = try row.text(0)
        identity = try row.text(1)
        account = try row.text(2)
        mainSubject = try row.text(3)
        storedClaims = try row.object(4)
        isDisabled = try row.optionalInteger(5) != nil
        revokedAt = [try row.optionalInteger(6), try row.optionalInteger(12)].compactMap(\.self).max()
        deletionDue = try row.optionalInteger(7)
        hasClaims = try row.integer(8) > 0
        claims = try row.layers(9, 10, 11)
    }

    /// The account.
    /// - Parameter changes: what a login changes.
    func existing(_ changes: LoginClaims.Changes = LoginClaims.Changes()) -> Account {
        Account(
            subject: account, storedClaims: changes.stored ?? storedClaims, isNew: false, isDisabled: isDisabled,
            revokedAt: revokedAt, deletionDue: deletionDue, hasClaims: hasClaims || changes.layers != nil)
    }
}

/// How an identity relates to the existing accounts: its owner and its new subjects.
///
/// The first known subject determines the owner, or the last one where aliases decide: an alias that has an account
/// keeps it, whatever else the provider happens to report. A subject that is bound to another identity stays there: a
/// user who turns out to have two accounts keeps both, because merging them needs the user's consent.
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
    ///   - identity: its subjects as reported by the provider, the main one first.
    ///   - results: of `findSubject`, one for each subject, starting at `offset`.
    init(_ identity: AccountIdentity, _ results: QueryResults, from offset: Int = 0) throws(AccountError) {
        let subjects = identity.subjects
        var known: [BoundSubject] = []
        var newSubjects: [String] = []
        for (index, subject) in subjects.enumerated() {
            if let row = results[index + offset].first {
                known.append(try BoundSubject(row))
            } else {
                newSubjects.append(subject)
            }
        }
        let owner = identity.aliasesDecide ? known.last : known.first
        let others = known.filter { other in owner.map { !$0.identity.hasSameBytes(as: other.identity) } ?? false }
        otherAccounts = others.map(\.account)
        self.owner = owner
        self.newSubjects = newSubjects
        // The main subject may belong to another identity, which keeps it.
        let hasForeignMain = others.contains { $0.subject.hasSameBytes(as: subjects.first ?? "") }
        promoted =
            hasForeignMain
            ? nil : owner.flatMap { IdentityBinding.promotion(subjects, newSubjects, over: $0.mainSubject) }
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
