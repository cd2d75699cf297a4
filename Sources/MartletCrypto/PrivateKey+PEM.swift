private import COpenSSL
package import MartletCore

extension PrivateKey {
    /// The unencrypted PEM of the key in PKCS #8 (RFC 5958), like an `AuthKey_….p8`.
    /// - Throws: `crypto.failure`.
    package func pkcs8PEM() throws(CryptoError) -> Secret {
        guard let output = unsafe BIO_new(BIO_s_secmem()) else { throw .draining(.cryptoFailure, "no buffer") }
        defer { unsafe BIO_free(output) }
        guard unsafe PEM_write_bio_PKCS8PrivateKey(output, handle.pointer, nil, nil, 0, nil, nil) == 1 else {
            throw .draining(.cryptoFailure, "writing the key failed")
        }
        var start: UnsafeMutablePointer<CChar>?
        let count = unsafe martlet_bio_bytes(output, &start)
        return Secret(unsafe UnsafeRawBufferPointer(start: start, count: Int(count)).map { $0 })
    }
}
