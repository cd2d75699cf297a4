internal import MartletCore
internal import MartletCrypto

/// The CPU work of one password check, to be run on a pool thread.
struct PasswordCheck: Sendable {
    /// The result of the check.
    struct Outcome: Sendable {
        let matches: Bool
        /// A stronger hash of the same password, if it needs a rehash.
        let replacement: String?
    }

    /// The user's hash, or a dummy of the same cost.
    let hash: PasswordHash
    /// The presented password, in every accepted form.
    let candidates: [Secret]
    /// `false` if the check must fail: the user is unknown or disabled.
    let mayMatch: Bool
    /// The parameters that hashes should have; `nil` if they cannot be replaced.
    let target: Argon2Parameters?

    func run() throws(CryptoError) -> Outcome {
        var matches = false
        // If no match is allowed, every form is computed even after a hit: timing must not reveal a dummy's password.
        for candidate in candidates where !matches {
            let isMatch = try hash.matches(candidate)
            matches = isMatch && mayMatch
        }
        guard matches, let target, hash.needsRehash(target), let password = candidates.last else {
            return Outcome(matches: matches, replacement: nil)
        }
        // If hashing fails, the old hash stays.
        return Outcome(matches: true, replacement: try? PasswordHash.make(password, with: target).encoded)
    }
}
