private import COpenSSL
package import MartletCore

/// A short-lived certificate and a CA created for it alone, whose key is discarded immediately.
///
/// For demos and tests: only clients that are configured to trust the CA accept it.
package struct EphemeralCertificate: Sendable {
    /// The certificate of the CA, as PEM.
    package let authority: [UInt8]
    /// The certificate, as PEM.
    package let certificate: [UInt8]
    /// The certificate's key, as PEM.
    package let key: Secret

    /// - Parameters:
    ///   - names: such as `DNS:localhost` and `IP:::1`.
    ///   - life: how long both are valid; validity begins an hour ago, for slow clocks.
    package init(for names: [String], life: Duration, clock: Clock) throws(TLSError) {
        let now = clock.unixTime
        let (start, end) = (now.advanced(bySeconds: -3600), now.advanced(bySeconds: life.wholeSeconds))
        let root = try CertificateDraft(named: "Martlet ephemeral CA", from: start, to: end)
        try root.extend(NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
        try root.extend(NID_key_usage, "critical,keyCertSign")
        try root.extend(NID_subject_key_identifier, "hash")
        try root.sign(by: root)
        let leaf = try CertificateDraft(named: "Martlet demo", from: start, to: end)
        try leaf.extend(NID_basic_constraints, "critical,CA:FALSE")
        try leaf.extend(NID_key_usage, "critical,digitalSignature")
        try leaf.extend(NID_ext_key_usage, "serverAuth")
        try leaf.extend(NID_subject_alt_name, names.joined(separator: ","))
        try leaf.extend(NID_subject_key_identifier, "hash")
        try leaf.extend(NID_authority_key_identifier, "keyid", issuer: root)
        try leaf.sign(by: root)
        authority = try root.certificatePEM()
        certificate = try leaf.certificatePEM()
        key = Secret(try leaf.keyPEM())
    }
}

/// A certificate under construction, with its own P-256 key.
@safe private final class CertificateDraft {
    private static let version = 2
    private static let serialBits: Int32 = 64

    private let certificate: OpaquePointer
    private let key: OpaquePointer

    init(named name: String, from start: UnixTime, to end: UnixTime) throws(TLSError) {
        ERR_clear_error()
        guard let certificate = unsafe X509_new() else { throw Self.failure() }
        guard let key = unsafe martlet_generate_ec("P-256") else {
            unsafe X509_free(certificate)
            throw Self.failure()
        }
        unsafe self.certificate = certificate
        unsafe self.key = key
        let serial = unsafe BN_new()
        defer { unsafe BN_free(serial) }
        guard unsafe X509_set_version(certificate, Self.version) == 1,
            unsafe BN_rand(serial, Self.serialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1,
            unsafe BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate)) != nil,
            unsafe ASN1_TIME_set(X509_getm_notBefore(certificate), time_t(start.seconds)) != nil,
            unsafe ASN1_TIME_set(X509_getm_notAfter(certificate), time_t(end.seconds)) != nil,
            unsafe X509_set_pubkey(certificate, key) == 1,
            unsafe X509_NAME_add_entry_by_txt(
                X509_get_subject_name(certificate), "CN", MBSTRING_ASC, name, -1, -1, 0) == 1
        else { throw Self.failure() }
    }

    deinit {
        unsafe EVP_PKEY_free(key)
        unsafe X509_free(certificate)
    }

    /// Adds an extension in the syntax of OpenSSL's configuration.
    func extend(_ kind: Int32, _ value: String, issuer: CertificateDraft? = nil) throws(TLSError) {
        var context = unsafe X509V3_CTX()
        unsafe X509V3_set_ctx(&context, issuer?.certificate ?? certificate, certificate, nil, nil, 0)
        guard let made = unsafe X509V3_EXT_nconf_nid(nil, &context, kind, value) else { throw Self.failure() }
        defer { unsafe X509_EXTENSION_free(made) }
        guard unsafe X509_add_ext(certificate, made, -1) == 1 else { throw Self.failure() }
    }

    func sign(by authority: CertificateDraft) throws(TLSError) {
        let issuer = unsafe X509_get_subject_name(authority.certificate)
        guard unsafe X509_set_issuer_name(certificate, issuer) == 1,
            unsafe X509_sign(certificate, authority.key, EVP_sha256()) > 0
        else { throw Self.failure() }
    }

    func certificatePEM() throws(TLSError) -> [UInt8] {
        try unsafe Self.text { unsafe PEM_write_bio_X509($0, certificate) }
    }

    func keyPEM() throws(TLSError) -> [UInt8] {
        try unsafe Self.text { unsafe PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
    }

    private static func text(_ write: (OpaquePointer?) -> Int32) throws(TLSError) -> [UInt8] {
        let bio = unsafe BIO_new(BIO_s_secmem())
        defer { unsafe BIO_free(bio) }
        var start: UnsafeMutablePointer<CChar>?
        guard unsafe write(bio) == 1 else { throw failure() }
        let count = unsafe martlet_bio_bytes(bio, &start)
        return unsafe UnsafeRawBufferPointer(start: start, count: Int(count)).map { $0 }
    }

    private static func failure() -> TLSError { TLSError(.tlsSetUpFailed, "certificate generation failed") }
}
