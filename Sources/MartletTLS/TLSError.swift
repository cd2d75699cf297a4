private import COpenSSL
package import MartletCore

/// Why a TLS context could not be created, or a TLS connection failed.
package struct TLSError: CodedError, Equatable {
    /// The setting of a context that caused an error.
    package enum Setting: Sendable, Hashable {
        /// The certificate of the identity with this number, from 0.
        case certificate(Int)
        /// The key of the identity with this number, from 0.
        case key(Int)
        /// The authorities that a server trusts for client certificates.
        case clientAuthorities
        /// The authorities that a client trusts for server certificates.
        case authorities
        case ciphers
        case cipherSuites
    }

    package let code: ErrorCode
    /// For operators; has file names and OpenSSL's reason, never key material.
    package let message: String
    /// The setting that caused the error; `nil` for other causes and on connections.
    package var setting: Setting?

    package init(code: ErrorCode, message: String, setting: Setting? = nil) {
        self.code = code
        self.message = message
        self.setting = setting
    }

    /// An error with the oldest reason in OpenSSL's error queue, which is emptied.
    init(_ code: ErrorCode, _ what: String) {
        self.init(code: code, message: "\(what): \(TLSError.drainQueue().reason)")
    }

    package static func == (left: TLSError, right: TLSError) -> Bool { left.code == right.code }

    /// A copy with the setting that caused the error.
    func at(_ setting: Setting) -> TLSError { TLSError(code: code, message: message, setting: setting) }

    /// The error of a failed handshake, by the reason in OpenSSL's error queue, which is emptied.
    static func handshake() -> TLSError {
        let (number, reason) = drainQueue()
        let code: ErrorCode =
            switch number {
            case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST: .tlsHTTPRequest
            case SSL_R_WRONG_VERSION_NUMBER, SSL_R_BAD_RECORD_TYPE, SSL_R_PACKET_LENGTH_TOO_LONG: .tlsNotTLS
            case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
                .tlsVersionUnsupported
            case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SUITABLE_KEY_SHARE, SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
                .tlsNothingShared
            case SSL_R_NO_APPLICATION_PROTOCOL, SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: .tlsNoApplicationProtocol
            case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: .tlsClientCertificateMissing
            case SSL_AD_REASON_OFFSET...: .tlsRefusedByPeer
            default: .tlsHandshakeFailed
            }
        return TLSError(code: code, message: "TLS handshake: \(reason)")
    }

    private static func drainQueue() -> (number: Int32, reason: String) {
        let first = ERR_get_error()
        ERR_clear_error()
        guard first != 0, let reason = unsafe ERR_reason_error_string(first) else { return (0, "no reason given") }
        return unsafe (martlet_tls_error_reason(first), String(cString: reason))
    }
}

extension ErrorCode {
    /// OpenSSL could not set up a context or a connection.
    package static let tlsSetUpFailed: ErrorCode = "tls.set_up_failed"

    /// The file with trusted certificates cannot be read.
    package static let tlsTrustUnreadable: ErrorCode = "tls.ca_unreadable"
    /// The file with trusted certificates has none.
    package static let tlsTrustEmpty: ErrorCode = "tls.ca_empty"
    /// The file with trusted certificates has an invalid certificate.
    package static let tlsTrustInvalid: ErrorCode = "tls.ca_invalid"
    /// Our own certificate file cannot be read.
    package static let tlsCertificateUnreadable: ErrorCode = "tls.certificate_unreadable"
    /// Our own certificate file has no certificate.
    package static let tlsCertificateEmpty: ErrorCode = "tls.certificate_empty"
    /// Our own certificate file has an invalid certificate.
    package static let tlsCertificateInvalid: ErrorCode = "tls.certificate_invalid"
    /// Our own certificate cannot be used with TLS, such as a certificate for an RSA key below 2048 bits.
    package static let tlsCertificateUnusable: ErrorCode = "tls.certificate_unusable"
    /// Our own key file cannot be read.
    package static let tlsKeyUnreadable: ErrorCode = "tls.key_unreadable"
    /// Our own key file has no key.
    package static let tlsKeyEmpty: ErrorCode = "tls.key_empty"
    /// Our own key file has an invalid key.
    package static let tlsKeyInvalid: ErrorCode = "tls.key_invalid"
    /// Our own key is encrypted with a passphrase.
    package static let tlsKeyEncrypted: ErrorCode = "tls.key_encrypted"
    /// Our own key is an RSA key below 2048 bits, on a curve below 256 bits, or of a kind that TLS does not use.
    package static let tlsKeyWeak: ErrorCode = "tls.key_weak"
    /// Our own key does not belong to our certificate.
    package static let tlsKeyMismatch: ErrorCode = "tls.key_mismatch"
    /// A name in the list of ciphers is unknown, or the list selects no cipher.
    package static let tlsCipherUnknown: ErrorCode = "tls.cipher_unknown"

    /// The name to verify the peer against is missing or malformed.
    package static let tlsServerNameInvalid: ErrorCode = "tls.server_name_invalid"
    /// The peer's certificate is not signed by a trusted authority.
    package static let tlsCertificateUntrusted: ErrorCode = "tls.certificate_untrusted"
    /// The peer's certificate is for another name or address.
    package static let tlsNameMismatch: ErrorCode = "tls.name_mismatch"
    /// The peer's certificate is expired or not yet valid.
    package static let tlsCertificateExpired: ErrorCode = "tls.certificate_expired"
    /// The client sent no certificate although one is required.
    package static let tlsClientCertificateMissing: ErrorCode = "tls.client_certificate_missing"
    /// The peer sent a plaintext HTTP request.
    package static let tlsHTTPRequest: ErrorCode = "tls.http_request"
    /// The peer sent bytes that are not TLS.
    package static let tlsNotTLS: ErrorCode = "tls.not_tls"
    /// The peer supports no allowed version.
    package static let tlsVersionUnsupported: ErrorCode = "tls.version_unsupported"
    /// There is no common cipher, group or signature algorithm.
    package static let tlsNothingShared: ErrorCode = "tls.nothing_shared"
    /// There is no common application protocol (ALPN).
    package static let tlsNoApplicationProtocol: ErrorCode = "tls.no_application_protocol"
    /// The peer ended the handshake with an alert.
    package static let tlsRefusedByPeer: ErrorCode = "tls.refused_by_peer"
    /// The peer's handshake messages exceed the limit.
    package static let tlsHandshakeTooLarge: ErrorCode = "tls.handshake_too_large"
    /// The handshake failed for another reason.
    package static let tlsHandshakeFailed: ErrorCode = "tls.handshake_failed"
    /// A protocol error on an established connection.
    package static let tlsProtocolError: ErrorCode = "tls.protocol_error"
}
