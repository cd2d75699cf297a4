private import COpenSSL
private import Synchronization

/// A verification context that is initialized once and reused.
///
/// Concurrent threads use copies, of which one is cached. Initializing a context takes a fifth of a verification.
///
/// Unchecked because the pointers are not `Sendable`: after `init` the template is only copied, which OpenSSL declares
/// `const`, and a copy is owned by the thread that has exchanged it out of `idle`.
@safe final class VerificationTemplate: @unchecked Sendable {
    private let template: OpaquePointer?
    private let key: KeyHandle
    /// `nil` for EdDSA, which signs messages instead of digests, and needs no template.
    private let hash: HashFunction?
    /// The address of an unused copy, or 0.
    private let idle = Atomic<UInt>(0)

    init(_ key: KeyHandle, hash: HashFunction?, isPSS: Bool) throws(CryptoError) {
        self.key = key
        self.hash = hash
        guard let hash else {
            unsafe template = nil
            return
        }
        guard let context = unsafe EVP_PKEY_CTX_new(key.pointer, nil) else {
            throw .draining(.cryptoFailure, "no verification context")
        }
        guard unsafe EVP_PKEY_verify_init(context) == 1,
            unsafe EVP_PKEY_CTX_set_signature_md(context, hash.pointer) == 1,
            unsafe !isPSS || Self.setPSS(context, hash)
        else {
            unsafe EVP_PKEY_CTX_free(context)
            throw .draining(.cryptoFailure, "no verification context")
        }
        unsafe template = context
    }

    /// RFC 7518 §3.5: MGF1 with the same hash, and a salt of its length; given as a number, it is the only one.
    private static func setPSS(_ context: OpaquePointer, _ hash: HashFunction) -> Bool {
        unsafe EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1
            && EVP_PKEY_CTX_set_rsa_mgf1_md(context, hash.pointer) == 1
            && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, Int32(clamping: hash.length)) == 1
    }

    deinit {
        unsafe EVP_PKEY_CTX_free(template)
        unsafe EVP_PKEY_CTX_free(OpaquePointer(bitPattern: idle.load(ordering: .acquiring)))
    }

    func verify(_ signature: [UInt8], over message: [UInt8]) -> Bool {
        guard let hash else { return key.verify(signature, ofWhole: message) }
        guard
            let context = unsafe OpaquePointer(bitPattern: idle.exchange(0, ordering: .acquiring))
                ?? EVP_PKEY_CTX_dup(template)
        else {
            ERR_clear_error()
            return false
        }
        let digest = hash.digest(message)
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

extension KeyHandle {
    /// Verifies a signature over a message that is not hashed before: EdDSA.
    fileprivate func verify(_ signature: [UInt8], ofWhole message: [UInt8]) -> Bool {
        guard let context = unsafe EVP_MD_CTX_new() else {
            ERR_clear_error()
            return false
        }
        defer { unsafe EVP_MD_CTX_free(context) }
        let valid = unsafe signature.withUnsafeBufferPointer { signature in
            unsafe message.withUnsafeBufferPointer { message in
                unsafe EVP_DigestVerifyInit(context, nil, nil, nil, pointer) == 1
                    && EVP_DigestVerify(
                        context, signature.baseAddress, signature.count, message.baseAddress, message.count) == 1
            }
        }
        if !valid { ERR_clear_error() }
        return valid
    }
}
