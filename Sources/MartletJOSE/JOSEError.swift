/// Why a token or a key is rejected.
///
/// The reason has no prefix, such as `malformed`; a provider adds its kind to form an `ErrorCode`: `apple.malformed`.
public struct JOSEError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A stable, machine-readable reason.
    public struct Reason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public var description: String { rawValue }

        /// There is no token.
        public static let tokenMissing = Reason(rawValue: "token_missing")
        /// The token exceeds the maximum length.
        public static let tokenTooLarge = Reason(rawValue: "token_too_large")
        /// The token is not three parts of strict base64url with strict JSON objects in the first two.
        public static let malformed = Reason(rawValue: "malformed")
        /// The header's `alg` is not one of those allowed.
        public static let algorithmNotAllowed = Reason(rawValue: "alg_not_allowed")
        /// The header has a field that changes the token's meaning, contains a key, or gives a type that is not accepted.
        public static let headerNotAllowed = Reason(rawValue: "header_not_allowed")
        /// The header's `kid` is missing, not a valid key ID, or not a key of the issuer.
        public static let unknownKey = Reason(rawValue: "unknown_key")
        /// The issuer's key with this ID must not be used for this token.
        public static let keyUnusable = Reason(rawValue: "key_unusable")
        /// A JWK is not a public key of a supported kind.
        public static let badKey = Reason(rawValue: "bad_key")
        /// The key document is too large, not a key set, or has no usable key.
        public static let badKeySet = Reason(rawValue: "bad_key_set")
    }

    public let reason: Reason
    /// For operators; of the token it shows short names of the header at most.
    public let message: String

    public init(_ reason: Reason, _ message: String) {
        self.reason = reason
        self.message = message
    }

    /// Errors are equal if their reasons are.
    public static func == (left: JOSEError, right: JOSEError) -> Bool { left.reason == right.reason }

    public var description: String { "\(message) [\(reason)]" }
}
