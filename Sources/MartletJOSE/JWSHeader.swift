private import MartletCore
public import MartletJSON

/// The header of a token (RFC 7515 §4), read strictly, and what matters of it; not yet to be believed.
public struct JWSHeader: Sendable {
    private static let limits = JSONLimits(maximumDepth: 4, maximumBytes: 1024)
    /// Fields that bring a key, name one elsewhere, or change how the token is to be read (RFC 7515 §4.1, RFC 7516, RFC 7797);
    /// `cty` says that there is another token inside (RFC 7519 §5.2).
    private static let forbidden = [
        "crit", "b64", "zip", "enc", "cty", "jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256",
    ]

    /// All that it says.
    public let fields: JSONObject
    /// What `alg` names, if there is such an algorithm.
    let algorithm: SignatureAlgorithm?
    /// What `kid` names, if that can be a key's name.
    let keyID: KeyID?
    /// Why a token with such fields is refused, if it is.
    let problem: JOSEError?

    /// - Throws: `malformed` for what is not base64url of a strict JSON object of at most 1 KiB and depth 4.
    init(_ text: ArraySlice<UInt8>) throws(JOSEError) {
        fields = try CompactJWS.object(text, limits: Self.limits, name: "header")
        let name = fields["alg"]?.string
        algorithm = name.flatMap { name in
            SignatureAlgorithm.allCases.first { $0.rawValue.hasSameBytes(as: name) }
        }
        keyID = fields["kid"]?.string.flatMap { KeyID($0) }
        problem = Self.problem(with: fields)
    }

    private static func problem(with fields: JSONObject) -> JOSEError? {
        for name in forbidden where fields.has(name) {
            return JOSEError(.headerNotAllowed, "the header has '\(name)'")
        }
        if let type = fields["typ"], type != "JWT" {
            return JOSEError(.headerNotAllowed, "the token's type is not JWT")
        }
        return nil
    }
}
