package import MartletCore
package import MartletCrypto

/// Seals the sign-ins of a browser as the value of its cookie, and opens them (AES-256-GCM).
package struct AttemptSeal: Sendable {
    private static let purpose = "martlet browser attempts 1"

    /// The longest content whose sealed form in base64url is a value of a cookie.
    static let maximumContent = CookieValue.maximumBytes / 4 * 3 - AES256GCM.overhead

    private let key: Secret

    /// - Parameter key: a secret of at least 32 random bytes that all instances share; it may have other purposes, too.
    package init(key: Secret) {
        self.key = HKDFSHA256.derive(
            from: key, salt: [], purpose: Array(Self.purpose.utf8), length: AES256GCM.keyLength)
    }

    /// The cookie's value; `nil` without attempts, when the cookie is deleted.
    /// - Throws: `crypto.failure`.
    package func seal(_ attempts: SignInAttempts) throws(CryptoError) -> String? {
        guard !attempts.isEmpty else { return nil }
        let content = Secret(AttemptCoding.encode(attempts.all))
        let sealed = try content.withBytes { content throws(CryptoError) in
            try AES256GCM.seal(content, with: key, context: Array(Self.purpose.utf8))
        }
        return Base64URL.encode(sealed)
    }

    /// The attempts in a cookie's value; none if it was not sealed with this key.
    package func open(_ value: [UInt8]) -> SignInAttempts {
        var attempts = SignInAttempts()
        guard value.count <= CookieValue.maximumBytes, let sealed = Base64URL.decode(value),
            let content = AES256GCM.open(sealed, with: key, context: Array(Self.purpose.utf8))
        else { return attempts }
        attempts.all = content.withBytes { AttemptCoding.decode($0) } ?? []
        return attempts
    }
}
