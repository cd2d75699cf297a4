package import MartletProvider

/// The principal behind a verified credential; a class, as it is passed between threads and tables.
package final class VerifiedPrincipal: Sendable {
    package let principal: Principal
    /// The hash of its subject, by which limits count and balancing divides; the same in every process.
    let subject: Int
    /// The ID that revocations name: the session's number, or ``SubjectRevocationID`` for other credentials.
    let revocationID: UInt64
    /// When it must be verified again, in Unix seconds.
    let expires: Int64
    /// When the credential itself expires, in milliseconds of Unix time.
    let end: Int64

    /// The cookie that the response sets in place of the presented one; `nil` if that stays.
    package let replacement: ReplacementCookie?

    /// - Parameters:
    ///   - number: of its subject, where it is known.
    ///   - revocationID: of a session; `nil` for the number of the subject.
    init(
        principal: Principal, number: UInt64? = nil, revocationID: UInt64? = nil, expires: Int64, end: Int64,
        replacement: ReplacementCookie? = nil
    ) {
        self.replacement = replacement
        self.principal = principal
        let number = number ?? SubjectRevocationID.of(principal.subject)
        subject = Int(truncatingIfNeeded: number)
        self.revocationID = revocationID ?? number
        self.expires = expires
        self.end = end
    }
}
