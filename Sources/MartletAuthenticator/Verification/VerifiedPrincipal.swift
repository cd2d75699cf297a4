internal import MartletBalancing
internal import MartletLimits
package import MartletProvider

/// The principal behind a verified credential; a class, as it is passed between threads and tables.
package final class VerifiedPrincipal: Sendable {
    package let principal: Principal
    /// The hash of its subject, by which limits count.
    let subject: Int
    /// Another hash of it, by which balancing divides: the same in every process.
    let subjectKey: UInt64
    /// The ID that revocations name: the session's number, or ``SubjectRevocationID`` for other credentials.
    let revocationID: UInt64
    /// When it must be verified again, in Unix seconds.
    let expires: Int64
    /// When the credential itself expires, in milliseconds of Unix time.
    let end: Int64

    /// The cookie that the response sets in place of the presented one; `nil` if that stays.
    package let replacement: ReplacementCookie?

    init(
        principal: Principal, revocationID: UInt64, expires: Int64, end: Int64, replacement: ReplacementCookie? = nil
    ) {
        self.replacement = replacement
        self.principal = principal
        subject = RateKey.hash(principal.subject)
        subjectKey = RendezvousHash.hash(principal.subject.utf8)
        self.revocationID = revocationID
        self.expires = expires
        self.end = end
    }
}
