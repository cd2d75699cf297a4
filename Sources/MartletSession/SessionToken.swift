package import MartletCore
internal import MartletCrypto

/// A session token: the session's lookup bytes and the secret that opens it.
///
/// The text is `mat_`, `mrt_` or `mct_`, then base64url of lookup half ‖ secret half; a refresh token and a cookie token
/// append an 8-byte MAC that proves that the session issued it. All tokens of a session have the same lookup half.
package struct SessionToken: Sendable {
    /// The kind of a token.
    package enum Kind: Sendable, CaseIterable {
        case access, refresh, cookie

        /// The prefix of every token of this kind.
        package var prefix: String { ownToken.prefix }

        private var ownToken: OwnToken {
            switch self {
            case .access: .access
            case .refresh: .refresh
            case .cookie: .cookie
            }
        }
        var bytes: Int { SessionToken.lookupLength + SessionToken.secretLength + (self == .access ? 0 : checkLength) }
        private var checkLength: Int { SessionToken.checkLength }
        /// Separates the keys and MACs of different kinds.
        var purpose: String {
            switch self {
            case .access: "access"
            case .refresh: "refresh"
            case .cookie: "cookie"
            }
        }
        /// The length of every token of this kind, in characters.
        package var length: Int { 4 + (bytes * 4 + 2) / 3 }
    }

    static let lookupLength = 24
    static let secretLength = 32
    static let checkLength = 8
    /// The length of what a session authenticates its tokens by, in bytes.
    static let verifierLength = 16

    let kind: Kind
    let lookup: [UInt8]
    let secret: Secret
    /// The MAC of a refresh token or cookie token; empty for an access token.
    let check: [UInt8]

    /// A cookie token of the session with this verifier.
    init(cookie secret: Secret, lookup: [UInt8], verifier: [UInt8]) {
        self.init(
            .cookie, lookup: lookup, secret: secret,
            check: SessionToken.check(of: secret, .cookie, verifier: verifier))
    }

    /// A new random cookie token.
    static func newCookie(lookup: [UInt8], verifier: [UInt8]) throws(CryptoError) -> SessionToken {
        SessionToken(cookie: Secret(try RandomBytes.make(secretLength)), lookup: lookup, verifier: verifier)
    }

    init(_ kind: Kind, lookup: [UInt8], secret: Secret, check: [UInt8] = []) {
        (self.kind, self.lookup, self.secret, self.check) = (kind, lookup, secret, check)
    }

    /// Parses a token strictly: every token has exactly one encoding.
    package init?(_ text: [UInt8], kind: Kind) {
        guard text.count == kind.length, text.starts(with: kind.prefix.utf8),
            let bytes = Base64URL.decode(text[4...]).map(Secret.init), bytes.count == kind.bytes
        else { return nil }
        self = bytes.withBytes { bytes in
            let secretEnd = SessionToken.lookupLength + SessionToken.secretLength
            return SessionToken(
                kind, lookup: Array(bytes[..<SessionToken.lookupLength]),
                secret: Secret(Array(bytes[SessionToken.lookupLength..<secretEnd])), check: Array(bytes[secretEnd...]))
        }
    }

    /// The token as sent to the client.
    package var text: Secret {
        var text = Array(kind.prefix.utf8)
        text.reserveCapacity(kind.length)
        let bytes = secret.withBytes { Secret(lookup + $0 + check) }
        bytes.withBytes { Base64URL.append($0, to: &text) }
        return Secret(text)
    }

    /// Identifies the token within its session: the first 8 bytes of the SHA-256 of the secret half, in base64url.
    var tokenHash: [UInt8] {
        var text: [UInt8] = []
        secret.withBytes { Base64URL.append(Array(SHA256.digest($0).prefix(8)), to: &text) }
        return text
    }

    /// The MAC which proves that the session with this verifier issued a token, even one that was replaced.
    /// - Parameter thumbprint: of the key that the token is bound to.
    static func check(
        of secret: Secret, _ kind: Kind = .refresh, verifier: [UInt8], boundTo thumbprint: String? = nil
    ) -> [UInt8] {
        let purpose = thumbprint == nil ? kind.purpose : "bound \(kind.purpose)"
        let message = secret.withBytes {
            Secret(Array("martlet \(purpose)".utf8) + $0 + Array((thumbprint ?? "").utf8))
        }
        // Copy: a secret wipes its storage, and the verifier is still needed.
        let key = Secret(verifier.map { $0 })
        return Array(message.withBytes { HMACSHA256.authenticate($0, key: key) }.prefix(checkLength))
    }

    func isGenuine(verifier: [UInt8], boundTo thumbprint: String? = nil) -> Bool {
        ConstantTime.areEqual(check, SessionToken.check(of: secret, kind, verifier: verifier, boundTo: thumbprint))
    }
}
