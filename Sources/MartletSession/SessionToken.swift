package import MartletCore
private import MartletCrypto

/// A token as clients hold it: which session, and the secret that opens it.
///
/// `mat_` or `mrt_`, then base64url of lookup half ‖ secret half, with 8 bytes more in a refresh token that show whether the
/// session ever gave it out. All tokens of a session have the same lookup half.
package struct SessionToken: Sendable {
    /// What it is good for.
    package enum Kind: Sendable, CaseIterable {
        case access, refresh

        /// What every token of the kind begins with.
        package var prefix: String { self == .access ? "mat_" : "mrt_" }
        var bytes: Int { SessionToken.lookupLength + SessionToken.secretLength + (self == .access ? 0 : checkLength) }
        private var checkLength: Int { SessionToken.checkLength }
        /// The characters of every token of the kind.
        package var length: Int { 4 + (bytes * 4 + 2) / 3 }
    }

    static let lookupLength = 24
    static let secretLength = 32
    static let checkLength = 8

    let kind: Kind
    let lookup: [UInt8]
    let secret: Secret
    /// Of a refresh token; empty for others.
    let check: [UInt8]

    init(_ kind: Kind, lookup: [UInt8], secret: Secret, check: [UInt8] = []) {
        self.kind = kind
        self.lookup = lookup
        self.secret = secret
        self.check = check
    }

    /// Reads a token strictly: every token has one spelling.
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

    /// The token as it is given out.
    package var text: Secret {
        var text = Array(kind.prefix.utf8)
        text.reserveCapacity(kind.length)
        let bytes = secret.withBytes { Secret(lookup + $0 + check) }
        bytes.withBytes { Base64URL.append($0, to: &text) }
        return Secret(text)
    }

    /// What the session files the token's wraps under: 16 digits of SHA-256 of the secret half.
    var mark: [UInt8] {
        secret.withBytes { Hexadecimal.encode(SHA256.digest($0).prefix(8)) }
    }

    /// What shows that a session with this verifier gave a refresh token out, even one that is of no use any more.
    static func check(of secret: Secret, verifier: [UInt8]) -> [UInt8] {
        let message = secret.withBytes { Secret(Array("martlet refresh".utf8) + $0) }
        // A secret wipes the storage it is given; the verifier goes on to be used.
        let key = Secret(verifier.map { $0 })
        return Array(message.withBytes { HMACSHA256.authenticate($0, key: key) }.prefix(checkLength))
    }

    func isGenuine(verifier: [UInt8]) -> Bool {
        ConstantTime.areEqual(check, SessionToken.check(of: secret, verifier: verifier))
    }
}
