private import COpenSSL
package import MartletCore

/// Why a TLS context could not be made, or a TLS connection had to end.
package struct TLSError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Which of the settings of a context is at fault.
    package enum Place: Sendable, Hashable {
        /// The certificate of the identity with this number, from 0.
        case certificate(Int)
        /// The key of the identity with this number, from 0.
        case key(Int)
        /// Whose certificates a server believes clients.
        case clientAuthorities
        /// Whose certificates a client believes servers.
        case authorities
        case ciphers
        case cipherSuites
    }

    package let code: ErrorCode
    /// For operators; names files and OpenSSL's reason, never key material.
    package let message: String
    /// `nil` where no single setting is at fault, and on connections.
    package var place: Place?

    package init(code: ErrorCode, message: String, place: Place? = nil) {
        self.code = code
        self.message = message
        self.place = place
    }

    /// A failure with the oldest reason in OpenSSL's queue, which is emptied.
    init(_ code: ErrorCode, _ what: String) {
        self.init(code: code, message: "\(what): \(TLSError.drainQueue().reason)")
    }

    package static func == (left: TLSError, right: TLSError) -> Bool { left.code == right.code }

    package var description: String { "\(message) [\(code)]" }

    /// The same with the setting that is at fault.
    func at(_ place: Place) -> TLSError { TLSError(code: code, message: message, place: place) }

    /// A handshake's failure by OpenSSL's reason, which is taken from its queue.
    static func handshake() -> TLSError {
        let (number, reason) = drainQueue()
        let code: ErrorCode =
            switch number {
            case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST: .tlsHTTPRequest
            case SSL_R_WRONG_VERSION_NUMBER, SSL_R_BAD_RECORD_TYPE, SSL_R_PACKET_LENGTH_TOO_LONG: .tlsNotSpoken
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
    /// The file with trusted certificates holds none.
    package static let tlsTrustEmpty: ErrorCode = "tls.ca_empty"
    /// The file with trusted certificates holds something that is no certificate.
    package static let tlsTrustInvalid: ErrorCode = "tls.ca_invalid"
    /// Our own certificate file cannot be read.
    package static let tlsCertificateUnreadable: ErrorCode = "tls.certificate_unreadable"
    /// Our own certificate file holds no certificate.
    package static let tlsCertificateEmpty: ErrorCode = "tls.certificate_empty"
    /// Our own certificate file holds something that is no certificate.
    package static let tlsCertificateInvalid: ErrorCode = "tls.certificate_invalid"
    /// Our own certificate cannot be used by TLS, such as one for an RSA key below 2048 bits.
    package static let tlsCertificateUnusable: ErrorCode = "tls.certificate_unusable"
    /// Our own key file cannot be read.
    package static let tlsKeyUnreadable: ErrorCode = "tls.key_unreadable"
    /// Our own key file holds no key.
    package static let tlsKeyEmpty: ErrorCode = "tls.key_empty"
    /// Our own key file holds something that is no key.
    package static let tlsKeyInvalid: ErrorCode = "tls.key_invalid"
    /// Our own key is locked by a passphrase.
    package static let tlsKeyEncrypted: ErrorCode = "tls.key_encrypted"
    /// Our own key is an RSA key below 2048 bits, a curve below 256, or of a kind that TLS has no use for.
    package static let tlsKeyWeak: ErrorCode = "tls.key_weak"
    /// Our own key does not belong to our certificate.
    package static let tlsKeyMismatch: ErrorCode = "tls.key_mismatch"
    /// A name in the list of ciphers is not known, or none is left to use.
    package static let tlsCipherUnknown: ErrorCode = "tls.cipher_unknown"

    /// The name to check the peer against is missing or malformed.
    package static let tlsServerNameInvalid: ErrorCode = "tls.server_name_invalid"
    /// The peer's certificate is not signed by anyone trusted.
    package static let tlsCertificateUntrusted: ErrorCode = "tls.certificate_untrusted"
    /// The peer's certificate is for another name or address.
    package static let tlsNameMismatch: ErrorCode = "tls.name_mismatch"
    /// The peer's certificate is expired or not yet valid.
    package static let tlsCertificateExpired: ErrorCode = "tls.certificate_expired"
    /// A client has shown no certificate where one is needed.
    package static let tlsClientCertificateMissing: ErrorCode = "tls.client_certificate_missing"
    /// The peer has sent an HTTP request in clear text.
    package static let tlsHTTPRequest: ErrorCode = "tls.http_request"
    /// What the peer has sent is not TLS.
    package static let tlsNotSpoken: ErrorCode = "tls.not_tls"
    /// The peer speaks no version that is allowed here.
    package static let tlsVersionUnsupported: ErrorCode = "tls.version_unsupported"
    /// The peer and we have no cipher, group or signature in common.
    package static let tlsNothingShared: ErrorCode = "tls.nothing_shared"
    /// The peer and we have no protocol in common (ALPN).
    package static let tlsNoApplicationProtocol: ErrorCode = "tls.no_application_protocol"
    /// The peer has ended the handshake with an alert.
    package static let tlsRefusedByPeer: ErrorCode = "tls.refused_by_peer"
    /// The peer's part of the handshake is larger than any honest one.
    package static let tlsHandshakeTooLarge: ErrorCode = "tls.handshake_too_large"
    /// The handshake failed for another reason.
    package static let tlsHandshakeFailed: ErrorCode = "tls.handshake_failed"
    /// An established connection broke the protocol.
    package static let tlsProtocolError: ErrorCode = "tls.protocol_error"
}
