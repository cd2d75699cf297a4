private import COpenSSL
package import MartletCore

/// Why a TLS context could not be made, or a TLS connection had to end.
package struct TLSError: Error, Sendable, Equatable, CustomStringConvertible {
    package let code: ErrorCode
    /// For operators; names files and OpenSSL's reason, never key material.
    package let message: String

    package init(code: ErrorCode, message: String) {
        self.code = code
        self.message = message
    }

    /// A failure with the oldest reason in OpenSSL's queue, which is emptied.
    init(_ code: ErrorCode, _ what: String) {
        self.init(code: code, message: "\(what): \(TLSError.drainQueue())")
    }

    package static func == (left: TLSError, right: TLSError) -> Bool { left.code == right.code }

    package var description: String { "\(message) [\(code)]" }

    private static func drainQueue() -> String {
        let first = ERR_get_error()
        ERR_clear_error()
        guard first != 0, let reason = unsafe ERR_reason_error_string(first) else { return "no reason given" }
        return unsafe String(cString: reason)
    }
}

extension ErrorCode {
    /// OpenSSL could not set up a context or a connection.
    package static let tlsSetUpFailed: ErrorCode = "tls.set_up_failed"
    /// The file with trusted certificates cannot be read, or holds none.
    package static let tlsTrustUnreadable: ErrorCode = "tls.ca_unreadable"
    /// Our own certificate file cannot be read.
    package static let tlsCertificateUnreadable: ErrorCode = "tls.certificate_unreadable"
    /// Our own key file cannot be read.
    package static let tlsKeyUnreadable: ErrorCode = "tls.key_unreadable"
    /// Our own key does not belong to our certificate.
    package static let tlsKeyMismatch: ErrorCode = "tls.key_mismatch"
    /// The name to check the peer against is missing or malformed.
    package static let tlsServerNameInvalid: ErrorCode = "tls.server_name_invalid"
    /// The peer's certificate is not signed by anyone trusted.
    package static let tlsCertificateUntrusted: ErrorCode = "tls.certificate_untrusted"
    /// The peer's certificate is for another name or address.
    package static let tlsNameMismatch: ErrorCode = "tls.name_mismatch"
    /// The peer's certificate is expired or not yet valid.
    package static let tlsCertificateExpired: ErrorCode = "tls.certificate_expired"
    /// The handshake failed for another reason.
    package static let tlsHandshakeFailed: ErrorCode = "tls.handshake_failed"
    /// An established connection broke the protocol.
    package static let tlsProtocolError: ErrorCode = "tls.protocol_error"
}
