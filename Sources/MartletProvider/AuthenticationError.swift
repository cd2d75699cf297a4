public import MartletCore

/// Why authentication failed.
public struct AuthenticationError: Error, Sendable, CustomStringConvertible {
    /// The kind of response to the client.
    ///
    /// An invalid credential and an unavailable dependency are different: an outage never makes a request anonymous.
    public enum Disposition: Sendable, Equatable {
        /// The credential is invalid: 401.
        case rejected
        /// The credential could not be verified: 503.
        case unavailable
        /// The body cannot be parsed as a credential, or it is ambiguous which credential a request has: 400.
        case malformed
        /// The caller is authenticated but not allowed, such as a banned user: 403.
        case denied
        /// Too many attempts: 429.
        case throttled
        /// The object does not exist, such as a password record to change: 404.
        case notFound
    }

    /// The detailed code, for logs, metrics and tests: `apple.bad_audience`. Clients never see it.
    public let code: ErrorCode
    public let disposition: Disposition
    /// The `Retry-After` of the response; sent with `unavailable` and `throttled` only.
    public let retryAfter: Duration?
    public let cause: (any Error)?
    /// The invalid members of a body; sent with `malformed` only.
    public let bodyErrors: [BodyError]
    /// Whom the attempt was about, for logs; clients never see it. `nil` where a credential names no user.
    public private(set) var user: AttemptedUser?
    /// Whose credential it is, where that is known; for logs.
    package private(set) var caller: RejectedCaller?

    /// The user that an attempt names.
    public enum AttemptedUser: Sendable, Equatable {
        /// A user that exists, by the provider's subject.
        case known(String)
        /// A name that no user has.
        case unknown
    }

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

    /// An invalid credential.
    public static func rejected(_ code: ErrorCode, cause: (any Error)? = nil) -> AuthenticationError {
        AuthenticationError(code, .rejected, cause: cause)
    }

    /// A credential that could not be verified.
    public static func unavailable(
        _ code: ErrorCode, retryAfter: Duration? = nil, cause: (any Error)? = nil
    ) -> AuthenticationError {
        AuthenticationError(code, .unavailable, retryAfter: retryAfter, cause: cause)
    }

    /// A value that could not be stored: `unavailable` with this code, but `throttled` for a client that has used up its
    /// share of the store.
    public static func store(_ error: StoreError, as code: ErrorCode) -> AuthenticationError {
        guard error.code == .storeShareUsedUp else { return .unavailable(code, cause: error) }
        return .throttled(error.code, retryAfter: StoreError.shareRetryAfter)
    }

    /// A body that is not a credential of this provider.
    public static func malformed(_ code: ErrorCode, cause: (any Error)? = nil) -> AuthenticationError {
        AuthenticationError(code, .malformed, cause: cause)
    }

    /// A body with a missing or invalid member.
    public static func malformed(_ code: ErrorCode, _ error: BodyError) -> AuthenticationError {
        AuthenticationError(code, .malformed, bodyErrors: [error])
    }

    /// An authenticated caller who is not allowed.
    public static func denied(_ code: ErrorCode, cause: (any Error)? = nil) -> AuthenticationError {
        AuthenticationError(code, .denied, cause: cause)
    }

    /// Too many attempts.
    public static func throttled(_ code: ErrorCode, retryAfter: Duration) -> AuthenticationError {
        AuthenticationError(code, .throttled, retryAfter: retryAfter)
    }

    /// The same error of an attempt that names a user.
    /// - Parameter providerSubject: the provider's subject; `nil` for a name that no user has.
    public func naming(_ providerSubject: String?) -> AuthenticationError {
        var error = self
        error.user = providerSubject.map { .known($0) } ?? .unknown
        return error
    }

    /// The same error of a credential whose owner is known.
    package func of(_ caller: RejectedCaller) -> AuthenticationError {
        var error = self
        error.caller = caller
        return error
    }

    public var description: String { "\(code)" }
}

/// Whose credential was rejected, for logs.
package struct RejectedCaller: Sendable, Equatable {
    package let subject: String
    /// `nil` without a session.
    package let sessionID: String?
    /// The provider that the caller has signed in with.
    package let provider: String?

    package init(subject: String, sessionID: String? = nil, provider: String? = nil) {
        (self.subject, self.sessionID, self.provider) = (subject, sessionID, provider)
    }
}
