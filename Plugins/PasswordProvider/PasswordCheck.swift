internal import MartletCore
internal import MartletCrypto

/// The work of one check, to be done on a thread that may be busy.
struct PasswordCheck: Sendable {
    /// What it came to.
    struct Outcome: Sendable {
        let matches: Bool
        /// A better hash of the same password, where one is due.
        let replacement: String?
    }

    /// The user's, or one that only takes the time.
    let hash: PasswordHash
    /// What was typed, in every form that counts.
    let candidates: [Secret]
    /// `false` where nothing may come of it: an unknown user, a disabled one.
    let mayMatch: Bool
    /// What hashes should be like; `nil` where they cannot be replaced.
    let target: Argon2Parameters?

    func run() throws(CryptoError) -> Outcome {
        var matches = false
        // Who may not match has every form computed even where one fits: time must not tell what a decoy's password is.
        for candidate in candidates where !matches {
            let fits = try hash.matches(candidate)
            matches = fits && mayMatch
        }
        guard matches, let target, hash.needsRehash(target), let password = candidates.last else {
            return Outcome(matches: matches, replacement: nil)
        }
        // Without a better hash the old one stays.
        return Outcome(matches: true, replacement: try? PasswordHash.make(password, with: target).encoded)
    }
}
