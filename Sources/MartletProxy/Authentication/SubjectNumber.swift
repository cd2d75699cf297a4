private import MartletCrypto

/// What revocations call a subject: it stands for every verdict on credentials of the subject that are no session's.
package enum SubjectNumber {
    private static let prefix = Array("martlet subject number".utf8)

    /// Never 0; the same in every instance.
    package static func of(_ subject: String) -> UInt64 {
        let digest = SHA256.digest(prefix + subject.utf8)
        return max(digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }, 1)
    }
}
