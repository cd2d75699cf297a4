internal import MartletCore
internal import MartletJSON

/// A subject that the store knows, and whose it is.
struct KnownSubject: Sendable {
    let subject: String
    let identity: String
    let account: String
    /// The identity's main subject.
    let mainSubject: String
    let keptClaims: JSONObject

    /// Reads a row of `findSubject`.
    init(_ row: Row) throws(AccountError) {
        subject = try row.text(0)
        identity = try row.text(1)
        account = try row.text(2)
        mainSubject = try row.text(3)
        keptClaims = try KeptClaims.read(try row.text(4))
    }
}

/// What an identity means for the accounts that are there: whose it is, and what of it is new.
///
/// The first subject that is known decides. One that is bound to another identity stays there: a person who turns
/// out to have two accounts keeps both, because nobody here can prove that they want them to be one.
struct IdentityBinding: Sendable {
    /// Whose the identity is; `nil` when none of its subjects is known.
    let owner: KnownSubject?
    /// Subjects that nobody has.
    let newSubjects: [String]
    /// Accounts of other identities that some of the subjects are bound to.
    let otherAccounts: [String]
    /// What becomes the identity's main subject; `nil` when it has that already.
    let promoted: String?

    /// - Parameters:
    ///   - subjects: as the provider tells them, the one to show first.
    ///   - answers: of `findSubject`, one for each, beginning at `offset`.
    init(_ subjects: [String], _ answers: Answers, from offset: Int = 0) throws(AccountError) {
        var owner: KnownSubject?
        var newSubjects: [String] = []
        var otherAccounts: [String] = []
        for (index, subject) in subjects.enumerated() {
            guard let row = answers[index + offset].first else {
                newSubjects.append(subject)
                continue
            }
            let known = try KnownSubject(row)
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

    /// Whether the store has to be changed for it.
    var isUpToDate: Bool { owner != nil && newSubjects.isEmpty && promoted == nil }

    /// The first subject, if it is new or stands before the present main subject.
    ///
    /// A login that knows the person by an old alias alone must not turn the order round.
    private static func promotion(_ subjects: [String], _ newSubjects: [String], over main: String) -> String? {
        guard let first = subjects.first, !first.hasSameBytes(as: main) else { return nil }
        let isNew = newSubjects.first.map { $0.hasSameBytes(as: first) } ?? false
        return isNew || subjects.contains { $0.hasSameBytes(as: main) } ? first : nil
    }
}
