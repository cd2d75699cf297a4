private import COpenSSL
public import MartletCore

/// A cryptographic operation that could not be done, or key material that may not be used.
public struct CryptoError: Error, Sendable, CustomStringConvertible {
    public let code: ErrorCode
    /// For operators; holds no key material.
    public let message: String

    public init(_ code: ErrorCode, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { "\(message) [\(code)]" }

    /// An error that says what OpenSSL has to say, and empties its queue for this thread.
    static func draining(_ code: ErrorCode, _ message: String) -> CryptoError {
        let reason = unsafe ERR_reason_error_string(ERR_peek_last_error())
        defer { ERR_clear_error() }
        guard let reason = unsafe reason else { return CryptoError(code, message) }
        return CryptoError(code, "\(message): \(unsafe String(cString: reason))")
    }
}

extension ErrorCode {
    /// A key that is malformed, off its curve, or of a kind that is not supported.
    public static let cryptoBadKey: ErrorCode = "crypto.bad_key"
    /// A key of a size or exponent that nobody should trust.
    public static let cryptoWeakKey: ErrorCode = "crypto.weak_key"
    /// OpenSSL refused an operation that should succeed.
    public static let cryptoFailure: ErrorCode = "crypto.failure"
}
