private import COpenSSL
public import MartletCore

/// The authorities that certificates of clients have to come from, where the gateway did not see the handshake
/// (RFC 9440). Immutable and thread-safe.
@safe public final class ClientTrust: Sendable {
    /// The maximum certificates between a client's and an authority's.
    public static let maximumDepth = 8
    /// OpenSSL's level of 112 bits: RSA from 2048 bits, no SHA-1.
    private static let securityLevel: Int32 = 2

    // nonisolated(unsafe): OpenSSL locks the store; it is not changed after init.
    private nonisolated(unsafe) let store: OpaquePointer

    /// Loads authorities.
    /// - Parameter pem: their certificates; text between them is ignored.
    /// - Throws: `certificate.ca_empty` or `certificate.ca_invalid`.
    public init(pem: [UInt8]) throws(ClientCertificateError) {
        ERR_clear_error()
        guard let store = unsafe X509_STORE_new() else { throw Self.untrusted("no memory") }
        unsafe self.store = store
        let bio = unsafe BIO_new_mem_buf(pem, Int32(clamping: pem.count))
        defer {
            unsafe BIO_free(bio)
            ERR_clear_error()
        }
        var count = 0
        while let authority = unsafe PEM_read_bio_X509(bio, nil, nil, nil) {
            defer { unsafe X509_free(authority) }
            guard unsafe X509_STORE_add_cert(store, authority) == 1 else {
                throw ClientCertificateError(.certificateAuthorityInvalid, "an authority cannot be used")
            }
            count += 1
        }
        let reason = ERR_get_error()
        // The end of the text is an error of its own.
        guard reason == 0 || martlet_tls_error_reason(reason) == PEM_R_NO_START_LINE else {
            throw ClientCertificateError(.certificateAuthorityInvalid, "authority \(count + 1) is not a certificate")
        }
        guard count > 0 else {
            throw ClientCertificateError(.certificateAuthorityMissing, "there is no certificate")
        }
    }

    deinit { unsafe X509_STORE_free(store) }

    /// Verifies that a certificate comes from one of the authorities, and may be used by clients; revocation is not
    /// checked.
    ///
    /// - Parameter intermediates: further certificates of the chain in DER, in any order; more than
    ///   ``maximumDepth`` are rejected.
    /// - Throws: `certificate.not_yet_valid`, `certificate.expired`, `certificate.wrong_purpose` or
    ///   `certificate.untrusted`, and `certificate.malformed` for an intermediate that is none.
    public func verify(
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
