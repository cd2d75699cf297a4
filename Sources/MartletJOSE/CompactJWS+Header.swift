private import MartletCore
private import MartletJSON

extension CompactJWS {
    /// Fields that bring a key, name one elsewhere, or change how the token is to be read (RFC 7515 §4.1, RFC 7516, RFC 7797).
    private static let forbiddenFields = ["crit", "b64", "zip", "enc", "jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256"]

    private static func isForbidden(_ name: String) -> Bool {
        forbiddenFields.contains { $0.hasSameBytes(as: name) }
    }

    /// The algorithm that the header claims, if it is one of those allowed.
    ///
    /// What verifies is the key's own.
    /// - Throws: `alg_not_allowed`.
    public func algorithm(among allowed: Set<SignatureAlgorithm>) throws(JOSEError) -> SignatureAlgorithm {
        guard let name = header["alg"]?.string,
            let algorithm = SignatureAlgorithm.allCases.first(where: {
                $0.rawValue.hasSameBytes(as: name)
            }), allowed.contains(algorithm)
        else { throw JOSEError(.algorithmNotAllowed, "the algorithm is not allowed") }
        return algorithm
    }

    /// Refuses fields that must be understood or must not be followed, and tokens of another type than JWT.
    /// - Throws: `header_not_allowed`.
    public func checkHeaderFields() throws(JOSEError) {
        for place in header.members.indices where Self.isForbidden(header.members[place].name) {
            throw JOSEError(.headerNotAllowed, "the header has '\(header.members[place].name)'")
        }
        if let type = header["typ"], type != "JWT" { throw JOSEError(.headerNotAllowed, "the token's type is not JWT") }
    }

    /// The key that the header names; there is no default key.
    /// - Throws: `unknown_key`.
    public func keyID() throws(JOSEError) -> KeyID {
        guard let name = header["kid"]?.string, let id = KeyID(name) else {
            throw JOSEError(.unknownKey, "the header names no key")
        }
        return id
    }
}
