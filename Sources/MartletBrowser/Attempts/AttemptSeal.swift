package import MartletCore
package import MartletCrypto

/// Seals a sign-in of a browser as the value of its cookie, and opens it (AES-256-GCM).
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

    /// The value of an attempt's cookie; `nil` if the attempt does not fit into one.
    /// - Throws: `crypto.failure`.
    package func seal(_ attempt: SignInAttempt) throws(CryptoError) -> String? {
        guard AttemptCoding.isEncodable(attempt) else { return nil }
        let content = Secret(AttemptCoding.encode(attempt))
        let sealed = try content.withBytes { content throws(CryptoError) in
            try AES256GCM.seal(content, with: key, context: Array(Self.purpose.utf8))
        }
        return Base64URL.encode(sealed)
    }

    /// The attempt in a cookie's value; `nil` if it was not sealed with this key.
    package func open(_ value: [UInt8]) -> SignInAttempt? {
        guard value.count <= CookieValue.maximumBytes, let sealed = Base64URL.decode(value),
            let content = AES256GCM.open(sealed, with: key, context: Array(Self.purpose.utf8))
        else { return nil }
        return content.withBytes { AttemptCoding.decode($0) }
    }
}
