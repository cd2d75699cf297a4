private import COpenSSL
public import MartletCore

/// A cryptographic operation that failed, or key material that must not be used.
public struct CryptoError: CodedError {
    public let code: ErrorCode
    /// For operators; holds no key material.
    public let message: String

    public init(_ code: ErrorCode, _ message: String) {
        self.code = code
        self.message = message
    }

    /// An error with OpenSSL's reason; empties OpenSSL's error queue of this thread.
    static func draining(_ code: ErrorCode, _ message: String) -> CryptoError {
        let reason = unsafe ERR_reason_error_string(ERR_peek_last_error())
        defer { ERR_clear_error() }
        guard let reason = unsafe reason else { return CryptoError(code, message) }
        return CryptoError(code, "\(message): \(unsafe String(cString: reason))")
    }
}

extension ErrorCode {
    /// A key that is malformed, not on its curve, or of an unsupported kind.
    public static let cryptoBadKey: ErrorCode = "crypto.bad_key"
    /// A key with an insecure size or exponent.
    public static let cryptoWeakKey: ErrorCode = "crypto.weak_key"
    /// An operation of OpenSSL failed unexpectedly.
    public static let cryptoFailure: ErrorCode = "crypto.failure"
}
