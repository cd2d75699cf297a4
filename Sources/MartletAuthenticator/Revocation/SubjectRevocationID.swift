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
