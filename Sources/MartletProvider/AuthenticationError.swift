public import MartletCore

/// Why a credential did not prove an identity.
public struct AuthenticationError: Error, Sendable, CustomStringConvertible {
    /// A bad credential (401) is one thing, not being able to tell (503) another: an outage is never "anonymous".
    public enum Disposition: Sendable { case rejected, unavailable }

    /// The fine reason, for logs, metrics and tests: `apple.bad_audience`.
    ///
    /// Clients never see it.
    public let code: ErrorCode
    public let disposition: Disposition
    public let cause: (any Error)?

    public init(_ code: ErrorCode, _ disposition: Disposition, cause: (any Error)? = nil) {
        self.code = code
        self.disposition = disposition
        self.cause = cause
    }

    /// A credential that is not good.
    public static func rejected(_ code: ErrorCode, cause: (any Error)? = nil) -> AuthenticationError {
        AuthenticationError(code, .rejected, cause: cause)
    }

    /// A verdict that could not be reached.
    public static func unavailable(_ code: ErrorCode, cause: (any Error)? = nil) -> AuthenticationError {
        AuthenticationError(code, .unavailable, cause: cause)
    }

    public var description: String { "\(code)" }
}
