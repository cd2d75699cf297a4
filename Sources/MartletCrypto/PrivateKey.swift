private import COpenSSL
public import MartletCore

/// A private key for signing: RS256 with RSA, ES256 with P-256. Thread-safe.
public final class PrivateKey: Sendable {
    /// The kinds of keys that can be generated.
    public enum Kind: Sendable { case rsa2048, p256 }

    /// The public key of the pair.
    public let publicKey: PublicKey
    let handle: KeyHandle

    /// Generates a key.
    /// - Throws: `crypto.failure`.
    public convenience init(generating kind: Kind) throws(CryptoError) {
        let made =
            switch kind {
            case .rsa2048: unsafe martlet_generate_rsa(2048)
            case .p256: unsafe martlet_generate_ec("P-256")
            }
        guard let made = unsafe made else { throw .draining(.cryptoFailure, "key generation failed") }
        try self.init(unsafe KeyHandle(made))
    }

    /// Parses an unencrypted PEM, such as the PKCS #8 of an `AuthKey_….p8`.
    /// - Throws: `crypto.bad_key` for anything but an RSA or P-256 private key, `crypto.weak_key`.
    public convenience init(pem: Secret) throws(CryptoError) {
        var read: OpaquePointer? = nil
        pem.withBytes { bytes in
            unsafe bytes.withUnsafeBytes { bytes in
                guard let source = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
                    return
                }
                defer { unsafe BIO_free(source) }
                // Without a callback, OpenSSL would prompt for a passphrase on the terminal.
                unsafe read = PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in -1 }, nil)
            }
        }
        guard let read = unsafe read else { throw .draining(.cryptoBadKey, "not an unencrypted PEM private key") }
        try self.init(unsafe KeyHandle(read))
    }

    private init(_ handle: KeyHandle) throws(CryptoError) {
        publicKey = try PublicKey(try handle.publicParts())
        self.handle = handle
    }

    /// Signs a message; returns the signature in JWS form: as long as the modulus, or r‖s in 64 bytes.
    /// - Throws: `crypto.failure`.
    public func sign(_ message: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard let context = unsafe EVP_MD_CTX_new() else { throw .draining(.cryptoFailure, "no digest context") }
        defer { unsafe EVP_MD_CTX_free(context) }
        var size = Int(unsafe EVP_PKEY_get_size(handle.pointer))
        var signature = [UInt8](repeating: 0, count: size)
        let done = unsafe message.withUnsafeBufferPointer { message in
            unsafe signature.withUnsafeMutableBufferPointer { output in
                unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, handle.pointer) == 1
                    && EVP_DigestSign(context, output.baseAddress, &size, message.baseAddress, message.count) == 1
            }
        }
        guard done else { throw .draining(.cryptoFailure, "signing failed") }
        signature.removeLast(signature.count - size)
        guard case .p256 = publicKey.parts else { return signature }
        guard let raw = EllipticCurve.rawP256Signature(der: signature) else {
            throw CryptoError(.cryptoFailure, "signing failed")
        }
        return raw
    }
}
