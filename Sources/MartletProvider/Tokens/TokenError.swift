public import MartletCore
public import MartletJOSE

/// Why a token does not pass ``TokenChecks``.
public struct TokenError: CodedError {
    /// How the failure is handled.
    public enum Kind: Sendable {
        /// The token is invalid.
        case rejected
        /// The key is not cached; a fetch may bring it. `nil`: the token names none, and it is not signed with the one
        /// that is cached, if there is one.
        case undecided(KeyID?)
        /// The issuer's keys are unavailable.
        case unavailable
    }

    public let kind: Kind
    /// The reason with the provider's prefix, such as `apple.bad_audience`.
    public let code: ErrorCode
    /// For operators and `martlet explain`.
    public let message: String

    public init(_ kind: Kind, code: ErrorCode, message: String) {
        self.kind = kind
        self.code = code
        self.message = message
    }

    /// What the core makes of it: a key that no fetch has brought is unavailable.
    public var authenticationError: AuthenticationError {
        switch kind {
        case .rejected: .rejected(code, cause: self)
        case .undecided, .unavailable: .unavailable(code, cause: self)
        }
    }
}
