private import COpenSSL
package import MartletCore

/// The authorities that certificates of clients have to come from, where the gateway did not see the handshake
/// (RFC 9440). Immutable and thread-safe.
@safe package final class ClientTrust: Sendable {
    /// The maximum certificates between a client's and an authority's.
    package static let maximumDepth = 8
    /// OpenSSL's level of 112 bits: RSA from 2048 bits, no SHA-1.
    private static let securityLevel: Int32 = 2

    // nonisolated(unsafe): OpenSSL locks the store; it is not changed after init.
    private nonisolated(unsafe) let store: OpaquePointer

    /// Loads a PEM file of authorities.
    /// - Throws: `tls.ca_unreadable`, `tls.ca_empty` or `tls.ca_invalid`.
    package init(file: String) throws(TLSError) {
        ERR_clear_error()
        guard let store = unsafe X509_STORE_new() else { throw TLSError(.tlsSetUpFailed, "no memory") }
        unsafe self.store = store
        _ = try unsafe TrustFile(path: file).load(into: store) { _ in true }
    }

    deinit { unsafe X509_STORE_free(store) }

    /// Verifies that a certificate comes from one of the authorities, and may be used by clients; revocation is not
    /// checked.
    ///
    /// - Parameter intermediates: further certificates of the chain in DER, in any order; more than
    ///   ``maximumDepth`` are rejected.
    /// - Throws: `certificate.not_yet_valid`, `certificate.expired`, `certificate.wrong_purpose` or
    ///   `certificate.untrusted`, and `certificate.malformed` for an intermediate that is none.
    package func verify(
        _ certificate: ClientCertificate, intermediates: [[UInt8]], at now: UnixTime
    ) throws(ClientCertificateError) {
        let leaf = try ParsedCertificate(der: certificate.der)
        guard intermediates.count <= Self.maximumDepth else { throw Self.untrusted("the chain is too long") }
        let chain = unsafe martlet_chain_new()
        defer { unsafe martlet_chain_free(chain) }
        for der in intermediates {
            let intermediate = try ParsedCertificate(der: der)
            // The chain owns a reference of its own.
            guard unsafe X509_up_ref(intermediate.pointer) == 1 else { throw Self.untrusted("no memory") }
            guard unsafe martlet_chain_push(chain, intermediate.pointer) == 1 else {
                unsafe X509_free(intermediate.pointer)
                throw Self.untrusted("no memory")
            }
        }
        let context = unsafe X509_STORE_CTX_new()
        defer {
            unsafe X509_STORE_CTX_free(context)
            ERR_clear_error()
        }
        guard unsafe X509_STORE_CTX_init(context, store, leaf.pointer, chain) == 1,
            let parameters = unsafe X509_STORE_CTX_get0_param(context),
            unsafe X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_CLIENT) == 1,
            unsafe X509_VERIFY_PARAM_set_trust(parameters, X509_TRUST_SSL_CLIENT) == 1
        else { throw Self.untrusted("no memory") }
        unsafe X509_VERIFY_PARAM_set_depth(parameters, Int32(Self.maximumDepth))
        unsafe X509_VERIFY_PARAM_set_auth_level(parameters, Self.securityLevel)
        unsafe X509_VERIFY_PARAM_set_time(parameters, time_t(now.seconds))
        guard unsafe X509_verify_cert(context) != 1 else { return }
        throw unsafe Self.error(X509_STORE_CTX_get_error(context))
    }

    private static func untrusted(_ message: String) -> ClientCertificateError {
        ClientCertificateError(.certificateUntrusted, message)
    }

    private static func error(_ status: Int32) -> ClientCertificateError {
        let code: ErrorCode =
            switch status {
            case X509_V_ERR_CERT_NOT_YET_VALID: .certificateNotYetValid
            case X509_V_ERR_CERT_HAS_EXPIRED: .certificateExpired
            case X509_V_ERR_INVALID_PURPOSE: .certificateWrongPurpose
            default: .certificateUntrusted
            }
        let reason = unsafe X509_verify_cert_error_string(Int(status)).map { unsafe String(cString: $0) }
        return ClientCertificateError(code, reason ?? "the certificate is not trusted")
    }
}
