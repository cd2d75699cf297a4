internal import MartletCore
private import MartletCrypto

/// The ID that revocations use for a subject: it covers every cached result for the subject's credentials other than
/// sessions.
package enum SubjectRevocationID {
    private static let prefix = Array("martlet subject number".utf8)

    /// Never 0; the same in every instance.
    package static func of(_ subject: String) -> UInt64 {
        let digest = SHA256.digest(prefix + subject.utf8)
        return max(digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }, 1)
    }
}

/// The IDs of some subjects that were asked for before: whoever signs each request sends many of them.
package struct SubjectNumbers {
    private static let limit = 64

    private var known = [(subject: String, number: UInt64)](repeating: ("", 0), count: limit)

    package init() {}

    /// The ID of a subject.
    package mutating func number(of subject: String) -> UInt64 {
        let index = subject.hashValue & (Self.limit - 1)
        // Of bytes: two subjects that Unicode calls equivalent are two.
        if known[index].number != 0, known[index].subject.hasSameBytes(as: subject) { return known[index].number }
        known[index] = (subject, SubjectRevocationID.of(subject))
        return known[index].number
    }
}
