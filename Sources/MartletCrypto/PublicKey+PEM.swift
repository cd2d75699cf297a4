private import COpenSSL
public import MartletCore

extension PublicKey {
    /// Parses a PEM of a public key, or of an unencrypted private key, whose public key is used.
    /// - Throws: `crypto.bad_key` for anything but an RSA or P-256 key, `crypto.weak_key`.
    public convenience init(pem: Secret) throws(CryptoError) {
        if let handle = Self.handle(pem) {
            try self.init(try handle.publicParts())
        } else {
            try self.init(try PrivateKey(pem: pem).publicKey.parts)
        }
    }

    /// `nil` unless it is the PEM of a public key.
    static func handle(_ pem: Secret) -> KeyHandle? {
        pem.withBytes { bytes in
            unsafe bytes.withUnsafeBytes { bytes in
                guard let source = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
                    return nil
                }
                defer { unsafe BIO_free(source) }
                guard let read = unsafe PEM_read_bio_PUBKEY(source, nil, nil, nil) else {
                    ERR_clear_error()
                    return nil
                }
                return unsafe KeyHandle(read)
            }
        }
    }
}
