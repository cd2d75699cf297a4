internal import MartletCore
private import MartletCrypto

/// A PKCE challenge of the method `S256` (RFC 7636 §4.2): the SHA-256 of a verifier.
package struct CodeChallenge: Sendable, Equatable {
    static let length = SHA256.length

    let bytes: [UInt8]

    init?(bytes: [UInt8]) {
        guard bytes.count == Self.length else { return nil }
        self.bytes = bytes
    }

    /// The challenge of a verifier.
    package init(verifier: String) { bytes = SHA256.digest(Array(verifier.utf8)) }

    /// The challenge that an app sent.
    /// - Parameters:
    ///   - text: `code_challenge`: base64url of a digest, without padding.
    ///   - method: `code_challenge_method`: `S256`, also if it is absent.
    /// - Throws: `browser.code_challenge_invalid`, also for the method `plain`.
    package init(_ text: String?, method: String?) throws(BrowserError) {
        guard method.map({ $0.utf8.elementsEqual("S256".utf8) }) ?? true,
            let digest = text.flatMap({ Base64URL.decode($0) }), digest.count == Self.length
        else {
            throw BrowserError(
                .browserChallengeInvalid, "code_challenge is not a SHA-256 in base64url, or its method is not S256")
        }
        bytes = digest
    }

    /// In base64url.
    package var text: String { Base64URL.encode(bytes) }

    /// Whether the challenge is that of a verifier: 43 to 128 unreserved characters (RFC 7636 §4.1), compared in
    /// constant time.
    package func matches(_ verifier: String) -> Bool {
        guard (43...128).contains(verifier.utf8.count), verifier.utf8.allSatisfy(URLEscaping.isUnreserved) else {
            return false
        }
        return ConstantTime.areEqual(bytes, SHA256.digest(Array(verifier.utf8)))
    }
}
