/// Why a token or a key is refused.
///
/// The reason is bare, such as `malformed`; a provider puts its kind before it to make an `ErrorCode`: `apple.malformed`.
public struct JOSEError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A stable word for what is wrong.
    public struct Reason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public var description: String { rawValue }

        /// There is no token.
        public static let tokenMissing = Reason(rawValue: "token_missing")
        /// The token is longer than any honest one.
        public static let tokenTooLarge = Reason(rawValue: "token_too_large")
        /// Not three parts of strict base64url, or not strict JSON objects in the first two.
        public static let malformed = Reason(rawValue: "malformed")
        /// The header's `alg` is not one of those allowed.
        public static let algorithmNotAllowed = Reason(rawValue: "alg_not_allowed")
        /// The header has a field that changes what the token means, brings its own key, or says that it is no JWT.
        public static let headerNotAllowed = Reason(rawValue: "header_not_allowed")
        /// The header's `kid` is missing, not a key id, or names no key of the issuer.
        public static let unknownKey = Reason(rawValue: "unknown_key")
        /// The issuer's key of that id may not be used for this.
        public static let keyUnusable = Reason(rawValue: "key_unusable")
        /// A key document that is too large, not a key set, or without any usable key.
        public static let badKeySet = Reason(rawValue: "bad_key_set")
    }

    public let reason: Reason
    /// For operators; holds nothing of the token.
    public let message: String

    public init(_ reason: Reason, _ message: String) {
        self.reason = reason
        self.message = message
    }

    /// Errors are equal by their reason.
    public static func == (left: JOSEError, right: JOSEError) -> Bool { left.reason == right.reason }

    public var description: String { "\(message) [\(reason)]" }
}
