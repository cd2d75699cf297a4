private import COpenSSL
private import Synchronization

/// A public key for verifying signatures: RS256 with RSA, ES256 with P-256 (RFC 7518 §3.3, §3.4). Thread-safe.
public final class PublicKey: Sendable {
    /// The allowed modulus sizes: verification time grows with the square of the size.
    private static let rsaBits = 2048...8192
    /// Exponents above 64 bits only make verification slow.
    private static let exponentBytes = 8

    /// The components of the key.
    public let parts: PublicKeyParts
    private let template: VerificationTemplate
    private let signatureLength: Int

    /// - Throws: `crypto.bad_key` for components that are not a key, `crypto.weak_key` for RSA not of 2048 to 8192 bits
    ///   or with an exponent that is even, below 65537 or above 64 bits.
    public init(_ parts: PublicKeyParts) throws(CryptoError) {
        let handle: KeyHandle
        switch parts {
        case .rsa(let modulus, let exponent):
            let modulus = Array(modulus.drop { $0 == 0 })
            let exponent = Array(exponent.drop { $0 == 0 })
            try Self.check(modulus: modulus, exponent: exponent)
            handle = try KeyHandle(modulus: modulus, exponent: exponent)
            self.parts = .rsa(modulus: modulus, exponent: exponent)
            signatureLength = modulus.count
        case .p256(let x, let y):
            guard x.count == P256.length, y.count == P256.length else {
                throw CryptoError(.cryptoBadKey, "a P-256 coordinate is not 32 bytes")
            }
            handle = try KeyHandle(x: x, y: y)
            self.parts = parts
            signatureLength = 2 * P256.length
        }
        template = try VerificationTemplate(handle)
    }

    private static func check(modulus: [UInt8], exponent: [UInt8]) throws(CryptoError) {
        guard let first = modulus.first, let last = modulus.last else {
            throw CryptoError(.cryptoBadKey, "the modulus is empty")
        }
        let bits = modulus.count * 8 - first.leadingZeroBitCount
        guard rsaBits.contains(bits) else { throw CryptoError(.cryptoWeakKey, "the modulus has \(bits) bits") }
        guard last & 1 == 1 else { throw CryptoError(.cryptoBadKey, "the modulus is even") }
        guard exponent.count <= exponentBytes else { throw CryptoError(.cryptoWeakKey, "the exponent is too large") }
        let value = exponent.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard value >= 65537, value & 1 == 1 else {
            throw CryptoError(.cryptoWeakKey, "the exponent is below 65537 or even")
        }
    }

    /// Whether `signature` over `message` was made with the private key.
    ///
    /// A signature of the wrong length, or with `r` or `s` outside 1 ..< n, is rejected before any arithmetic.
    public func verify(_ signature: [UInt8], over message: [UInt8]) -> Bool {
        guard signature.count == signatureLength else { return false }
        switch parts {
        case .rsa: return template.verify(signature, over: message)
        case .p256:
            guard let encoded = P256.derSignature(raw: signature) else { return false }
            return template.verify(encoded, over: message)
        }
    }
}

/// A verification context that is initialized once and reused.
///
/// Concurrent threads use copies, of which one is cached. Initializing a context takes a fifth of a verification.
///
/// Unchecked because the pointers are not `Sendable`: after `init` the template is only copied, which OpenSSL declares
/// `const`, and a copy is owned by the thread that has exchanged it out of `idle`.
@safe private final class VerificationTemplate: @unchecked Sendable {
    private let template: OpaquePointer
    private let key: KeyHandle
    /// The address of an unused copy, or 0.
    private let idle = Atomic<UInt>(0)

    init(_ key: KeyHandle) throws(CryptoError) {
        guard let context = unsafe EVP_PKEY_CTX_new(key.pointer, nil) else {
            throw .draining(.cryptoFailure, "no verification context")
        }
        guard unsafe EVP_PKEY_verify_init(context) == 1,
            unsafe EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) == 1
        else {
            unsafe EVP_PKEY_CTX_free(context)
            throw .draining(.cryptoFailure, "no verification context")
        }
        unsafe template = context
        self.key = key
    }

    deinit {
        unsafe EVP_PKEY_CTX_free(template)
        unsafe EVP_PKEY_CTX_free(OpaquePointer(bitPattern: idle.load(ordering: .acquiring)))
    }

    func verify(_ signature: [UInt8], over message: [UInt8]) -> Bool {
        guard
            let context = unsafe OpaquePointer(bitPattern: idle.exchange(0, ordering: .acquiring))
                ?? EVP_PKEY_CTX_dup(template)
        else {
            ERR_clear_error()
            return false
        }
        let digest = SHA256.digest(message)
        let valid = unsafe signature.withUnsafeBufferPointer { signature in
            unsafe digest.withUnsafeBufferPointer { digest in
                unsafe EVP_PKEY_verify(
                    context, signature.baseAddress, signature.count, digest.baseAddress, digest.count) == 1
            }
        }
        if !valid { ERR_clear_error() }
        let other = idle.exchange(UInt(bitPattern: context), ordering: .acquiringAndReleasing)
        unsafe EVP_PKEY_CTX_free(OpaquePointer(bitPattern: other))
        return valid
    }
}
