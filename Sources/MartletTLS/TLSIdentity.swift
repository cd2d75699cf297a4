private import COpenSSL
package import MartletCore
internal import MartletCrypto

/// A certificate chain and its key, as PEM files.
package struct TLSIdentityFiles: Sendable, Hashable {
    package var certificateFile: String
    package var keyFile: String

    package init(certificateFile: String, keyFile: String) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }
}

/// Information for operators about one of our certificates.
package struct TLSCertificateInfo: Sendable, Equatable {
    package let file: String
    /// The subject alternative names: host names in lowercase, and addresses.
    package let names: [String]
    package let notBefore: UnixTime
    package let notAfter: UnixTime

    /// Whether `now` is within the validity period.
    package func isValid(at now: UnixTime) -> Bool { notBefore <= now && now <= notAfter }
}

/// A certificate with its chain and key in memory, verified to belong together.
@safe final class TLSIdentity: Sendable {
    private static let rsaMinimumBits: Int32 = 2048
    private static let curveMinimumBits: Int32 = 256

    // nonisolated(unsafe): never changed after init; OpenSSL counts references atomically.
    private nonisolated(unsafe) let certificate: OpaquePointer
    // nonisolated(unsafe): as above.
    private nonisolated(unsafe) let chain: OpaquePointer
    // nonisolated(unsafe): as above.
    private nonisolated(unsafe) let key: OpaquePointer
    /// OpenSSL's ID of the key type; a connection can have one identity of each type.
    let kind: Int32
    let info: TLSCertificateInfo
    /// The host names of the certificate.
    let hosts: [String]

    /// Loads both files.
    /// - Parameter number: the identity's number in errors.
    init(_ files: TLSIdentityFiles, number: Int) throws(TLSError) {
        let loaded: (OpaquePointer, OpaquePointer)
        do {
            unsafe loaded = try unsafe TLSIdentity.chain(files.certificateFile)
        } catch {
            throw error.at(.certificate(number))
        }
        unsafe (certificate, chain) = unsafe loaded
        do {
            unsafe key = try unsafe TLSIdentity.key(files.keyFile)
        } catch {
            unsafe X509_free(loaded.0)
            unsafe martlet_chain_free(loaded.1)
            throw error.at(.key(number))
        }
        kind = unsafe EVP_PKEY_get_base_id(key)
        let names = unsafe CertificateNames(of: certificate)
        hosts = names.hosts
        info = unsafe TLSCertificateInfo(
            file: files.certificateFile, names: names.hosts + names.addresses,
            notBefore: CertificateTime.unixTime(X509_get0_notBefore(certificate)),
            notAfter: CertificateTime.unixTime(X509_get0_notAfter(certificate)))
        try check(files, number)
    }

    deinit {
        unsafe EVP_PKEY_free(key)
        unsafe martlet_chain_free(chain)
        unsafe X509_free(certificate)
    }

    /// Uses it for every connection of a context.
    func use(in context: OpaquePointer, _ file: String, number: Int) throws(TLSError) {
        ERR_clear_error()
        guard unsafe SSL_CTX_use_cert_and_key(context, certificate, key, chain, 1) == 1 else {
            throw TLSError(.tlsCertificateUnusable, file).at(.certificate(number))
        }
    }

    /// Uses it for one connection.
    func use(on ssl: OpaquePointer?) -> Bool { unsafe SSL_use_cert_and_key(ssl, certificate, key, chain, 1) == 1 }

    private func check(_ files: TLSIdentityFiles, _ number: Int) throws(TLSError) {
        ERR_clear_error()
        guard unsafe X509_check_private_key(certificate, key) == 1 else {
            ERR_clear_error()
            throw TLSError(
                code: .tlsKeyMismatch, message: "\(files.keyFile) is not the key of \(files.certificateFile)",
                setting: .key(number))
        }
        let bits = unsafe EVP_PKEY_get_bits(key)
        let isStrong =
            switch kind {
            case EVP_PKEY_RSA, EVP_PKEY_RSA_PSS: bits >= TLSIdentity.rsaMinimumBits
            case EVP_PKEY_EC: bits >= TLSIdentity.curveMinimumBits
            case EVP_PKEY_ED25519, EVP_PKEY_ED448: true
            default: false
            }
        guard isStrong else {
            throw TLSError(
                code: .tlsKeyWeak,
                message: "\(files.keyFile): RSA keys need 2048 bits, curves 256; this one has \(bits)",
                setting: .key(number))
        }
    }

    @unsafe private static func chain(_ path: String) throws(TLSError) -> (OpaquePointer, OpaquePointer) {
        let file = try PEMFile(path, unreadable: .tlsCertificateUnreadable)
        guard let chain = unsafe martlet_chain_new() else { throw TLSError(.tlsSetUpFailed, "no memory") }
        var leaf: OpaquePointer?
        do {
            _ = try unsafe file.certificates(of: path, invalid: .tlsCertificateInvalid) {
                certificate throws(TLSError) in
                if unsafe leaf == nil {
                    unsafe leaf = certificate
                } else if unsafe martlet_chain_push(chain, certificate) != 1 {
                    unsafe X509_free(certificate)
                    throw TLSError(.tlsSetUpFailed, "no memory")
                }
            }
        } catch {
            unsafe X509_free(leaf)
            unsafe martlet_chain_free(chain)
            throw error
        }
        guard let leaf = unsafe leaf else {
            unsafe martlet_chain_free(chain)
            throw TLSError(code: .tlsCertificateEmpty, message: "\(path) has no certificate")
        }
        return unsafe (leaf, chain)
    }

    @unsafe private static func key(_ path: String) throws(TLSError) -> OpaquePointer {
        let file = try PEMFile(path, unreadable: .tlsKeyUnreadable)
        return try unsafe file.read { bio throws(TLSError) in
            var needsPassphrase = false
            ERR_clear_error()
            let key = unsafe withUnsafeMutablePointer(to: &needsPassphrase) { flag in
                unsafe PEM_read_bio_PrivateKey(
                    bio, nil,
                    { _, _, _, flag in
                        unsafe flag?.assumingMemoryBound(to: Bool.self).pointee = true
                        return -1
                    }, flag)
            }
            if let key = unsafe key { return unsafe key }
            ERR_clear_error()
            if needsPassphrase {
                throw TLSError(code: .tlsKeyEncrypted, message: "\(path) is encrypted with a passphrase")
            }
            throw file.contains(" PRIVATE KEY-----")
                ? TLSError(code: .tlsKeyInvalid, message: "\(path) has an invalid private key")
                : TLSError(code: .tlsKeyEmpty, message: "\(path) has no private key")
        }
    }
}
