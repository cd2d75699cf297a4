public import MartletJSON

/// The header of a token (RFC 7515 §4), parsed strictly, and the fields that matter; not to be trusted yet.
public struct JWSHeader: Sendable {
    /// A chain of certificates in `x5c` has some KiB.
    static let maximumBytes = 8 * 1024
    private static let limits = JSONLimits(maximumDepth: 4, maximumBytes: maximumBytes)
    /// Fields that change how a token is processed (RFC 7515 §4.1.11, RFC 7516, RFC 7797), and the one that contains a
    /// key. Every other field that is not understood is ignored, as RFC 7515 §4 demands; none is ever followed.
    static let forbidden = ["crit", "b64", "zip", "enc", "jwk"]
    /// Fields that name a key by its address or its certificate, and the type of the payload: an issuer that is known
    /// not to write them has not written a token that has one.
    static let unusual = ["cty", "jku", "x5u", "x5c", "x5t", "x5t#S256"]

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

    /// - Throws: `malformed` unless it is base64url of a strict JSON object of at most 8 KiB and depth 4.
    init(_ text: ArraySlice<UInt8>) throws(JOSEError) {
        fields = try CompactJWS.object(text, limits: Self.limits, name: "header")
        algorithm = fields["alg"]?.string.flatMap { SignatureAlgorithm(named: $0) }
        keyID = fields["kid"]?.string.flatMap { KeyID($0) }
        type = TokenType(fields["typ"])
        error = Self.error(in: fields)
    }

    private static func error(in fields: JSONObject) -> JOSEError? {
        for name in forbidden where fields.has(name) { return has(name) }
        // A token in a token (RFC 7519 §5.2).
        guard let content = fields["cty"], MediaType.isSame(content, "jwt") else { return nil }
        return JOSEError(.headerNotAllowed, "the header says that the token contains another one: 'cty' is JWT")
    }

    /// What a header has that its issuer never writes: any field of ``unusual``, or a `typ` other than `JWT`.
    var unusualField: JOSEError? {
        for name in Self.unusual where fields.has(name) { return Self.has(name) }
        return type == .jwt && fields["typ"] != "JWT"
            ? JOSEError(.headerNotAllowed, "the token's type is not written JWT") : nil
    }

    private static func has(_ name: String) -> JOSEError { JOSEError(.headerNotAllowed, "the header has '\(name)'") }
}

/// Compares `typ` and `cty`, which are media types (RFC 7515 §4.1.9): without case, and with `application/` or without.
enum MediaType {
    private static let prefix = "application/"

    /// - Parameter name: in lower case, without `application/`.
    static func isSame(_ value: JSONValue, _ name: String) -> Bool {
        guard let text = value.string else { return false }
        return isSame(text, name)
            || (text.utf8.count == prefix.utf8.count + name.utf8.count && isSame(text, prefix + name))
    }

    private static func isSame(_ text: String, _ name: String) -> Bool {
        text.utf8.elementsEqual(name.utf8) { byte, wanted in
            byte == wanted || ((0x41...0x5A).contains(byte) && byte | 0x20 == wanted)
        }
    }
}

/// What the header of a token says that it is (RFC 8725 §3.11): tokens of one kind must not pass for another.
public enum TokenType: Sendable, Hashable {
    /// The header does not say.
    case none
    /// `JWT`, in any case, with `application/` or without.
    case jwt
    /// `at+jwt`, an access token (RFC 9068 §2.1), in any case, with `application/` or without.
    case accessToken
    /// Anything else, such as `logout+jwt`, `dpop+jwt` or `secevent+jwt`; never accepted.
    case other

    init(_ value: JSONValue?) {
        switch value {
        case nil: self = .none
        case let value? where MediaType.isSame(value, "jwt"): self = .jwt
        case let value? where MediaType.isSame(value, "at+jwt"): self = .accessToken
        default: self = .other
        }
    }
}
