public import MartletJSON

/// The header of a token (RFC 7515 §4), parsed strictly, and the fields that matter; not to be trusted yet.
public struct JWSHeader: Sendable {
    private static let limits = JSONLimits(maximumDepth: 4, maximumBytes: 1024)
    /// Fields that contain or reference a key, or change the processing (RFC 7515 §4.1, RFC 7516, RFC 7797); `cty`
    /// indicates a nested token (RFC 7519 §5.2).
    static let forbidden = [
        "crit", "b64", "zip", "enc", "cty", "jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256",
    ]

    /// All fields of the header.
    public let fields: JSONObject
    /// The algorithm in `alg`, if it is supported.
    let algorithm: SignatureAlgorithm?
    /// The key ID in `kid`, if it is valid.
    let keyID: KeyID?
    /// What `typ` says that the token is.
    public let type: TokenType
    /// Why a token with this header is rejected, whatever its type; `nil` if the fields are allowed.
    let error: JOSEError?

    /// - Throws: `malformed` unless it is base64url of a strict JSON object of at most 1 KiB and depth 4.
    init(_ text: ArraySlice<UInt8>) throws(JOSEError) {
        fields = try CompactJWS.object(text, limits: Self.limits, name: "header")
        algorithm = fields["alg"]?.string.flatMap { SignatureAlgorithm(named: $0) }
        keyID = fields["kid"]?.string.flatMap { KeyID($0) }
        type = TokenType(fields["typ"])
        error = Self.error(in: fields)
    }

    private static func error(in fields: JSONObject) -> JOSEError? {
        for name in forbidden where fields.has(name) {
            return JOSEError(.headerNotAllowed, "the header has '\(name)'")
        }
        return nil
    }
}

/// What the header of a token says that it is (RFC 8725 §3.11): tokens of one kind must not pass for another.
public enum TokenType: Sendable, Hashable {
    /// The header does not say.
    case none
    /// `JWT`, in this spelling.
    case jwt
    /// `at+jwt`, an access token (RFC 9068 §2.1), with `application/` or without.
    case accessToken
    /// Anything else, such as `logout+jwt`, `dpop+jwt` or `secevent+jwt`; never accepted.
    case other

    init(_ value: JSONValue?) {
        switch value {
        case nil: self = .none
        case "JWT": self = .jwt
        case "at+jwt", "application/at+jwt": self = .accessToken
        default: self = .other
        }
    }
}
