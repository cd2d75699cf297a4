public import MartletCore

/// Why a credential did not prove an identity.
public struct AuthenticationError: Error, Sendable, CustomStringConvertible {
    /// What kind of answer it asks for.
    ///
    /// A bad credential is one thing, not being able to tell another: an outage is never "anonymous".
    public enum Disposition: Sendable, Equatable {
        /// The credential is not good: 401.
        case rejected
        /// It could not be decided: 503.
        case unavailable
        /// What was sent cannot be read as a credential: 400.
        case malformed
        /// The caller is known and may not come in, such as a banned user: 403.
        case denied
        /// Too many attempts: 429.
        case throttled
        /// There is no such thing, such as a password record to change: 404.
        case notFound
    }

    /// The fine reason, for logs, metrics and tests: `apple.bad_audience`.
    ///
    /// Clients never see it.
    public let code: ErrorCode
    public let disposition: Disposition
    /// When trying again may help; only `unavailable` and `throttled` answers tell.
    public let retryAfter: Duration?
    public let cause: (any Error)?
    /// Which members of a body are wrong, and how; only `malformed` responses tell.
    public let bodyErrors: [BodyError]

    public init(
        _ code: ErrorCode, _ disposition: Disposition, retryAfter: Duration? = nil, cause: (any Error)? = nil,
        bodyErrors: [BodyError] = []
    ) {
        self.code = code
        self.disposition = disposition
        self.retryAfter = retryAfter
        self.cause = cause
        self.bodyErrors = bodyErrors
    }

    /// A credential that is not good.
    public static func rejected(_ code: ErrorCode, cause: (any Error)? = nil) -> AuthenticationError {
        AuthenticationError(code, .rejected, cause: cause)
    }

    /// A verdict that could not be reached.
    public static func unavailable(
        _ code: ErrorCode, retryAfter: Duration? = nil, cause: (any Error)? = nil
    ) -> AuthenticationError {
        AuthenticationError(code, .unavailable, retryAfter: retryAfter, cause: cause)
    }

    /// A body that is no credential of this provider.
    public static func malformed(_ code: ErrorCode, cause: (any Error)? = nil) -> AuthenticationError {
        AuthenticationError(code, .malformed, cause: cause)
    }

    /// A body with a member that is missing or wrong.
    public static func malformed(_ code: ErrorCode, _ error: BodyError) -> AuthenticationError {
        AuthenticationError(code, .malformed, bodyErrors: [error])
    }

    /// A caller who is known and not let in.
    public static func denied(_ code: ErrorCode, cause: (any Error)? = nil) -> AuthenticationError {
        AuthenticationError(code, .denied, cause: cause)
    }

    /// One attempt too many.
    public static func throttled(_ code: ErrorCode, retryAfter: Duration) -> AuthenticationError {
        AuthenticationError(code, .throttled, retryAfter: retryAfter)
    }

    public var description: String { "\(code)" }
}
