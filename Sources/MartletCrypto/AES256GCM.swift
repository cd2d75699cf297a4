private import COpenSSL
public import MartletCore

/// AES-256 in Galois/Counter Mode (NIST SP 800-38D): authenticated encryption.
///
/// The sealed form is nonce ‖ ciphertext ‖ tag. Nonces are random; one key should seal fewer than 2³² times.
public enum AES256GCM {
    /// The length of a key in bytes.
    public static let keyLength = 32
    /// The length of the nonce before the ciphertext, in bytes.
    public static let nonceLength = 12
    /// The length of the tag after the ciphertext, in bytes.
    public static let tagLength = 16
    /// The bytes that sealing adds.
    public static let overhead = nonceLength + tagLength

    /// Seals bytes with a key.
    /// - Parameter context: associated data that must be the same for opening, such as a record's key; not part of the
    ///   result.
    /// - Throws: `crypto.failure`, also for a key that is not 32 bytes.
    public static func seal(
        _ bytes: [UInt8], with key: Secret, context: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        try seal(bytes, with: key, context: context, nonce: RandomBytes.make(nonceLength))
    }

    /// Opens sealed bytes.
    /// - Returns: `nil` for another key or context, or if any bit was changed.
    public static func open(_ sealed: [UInt8], with key: Secret, context: [UInt8]) -> Secret? {
        guard sealed.count >= overhead, key.count == keyLength else { return nil }
        let size = sealed.count - overhead
        let cipher = Cipher(isSealing: false)
        var bytes = [UInt8](repeating: 0, count: size)
        let isGenuine = unsafe sealed.withUnsafeBufferPointer { sealed in
            unsafe bytes.withUnsafeMutableBufferPointer { output in
                unsafe cipher.begin(key, nonce: UnsafeBufferPointer(rebasing: sealed[..<nonceLength]))
                    && cipher.bind(context)
                    && cipher.process(UnsafeBufferPointer(rebasing: sealed[nonceLength..<(nonceLength + size)]), output)
                    && cipher.check(UnsafeBufferPointer(rebasing: sealed[(nonceLength + size)...]))
            }
        }
        // Owned by a secret in any case, so that unauthenticated plaintext is wiped, too.
        let opened = Secret(bytes)
        return isGenuine ? opened : nil
    }

    static func seal(
        _ bytes: [UInt8], with key: Secret, context: [UInt8], nonce: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        guard key.count == keyLength, nonce.count == nonceLength else {
            throw CryptoError(.cryptoFailure, "a key or nonce of AES-256-GCM has the wrong length")
        }
        let cipher = Cipher(isSealing: true)
        var sealed = nonce + [UInt8](repeating: 0, count: bytes.count + tagLength)
        let isDone = unsafe bytes.withUnsafeBufferPointer { input in
            unsafe sealed.withUnsafeMutableBufferPointer { output in
                let body = unsafe UnsafeMutableBufferPointer(rebasing: output[nonceLength...])
                let tag = unsafe UnsafeMutableBufferPointer(rebasing: body[bytes.count...])
                return unsafe cipher.begin(key, nonce: UnsafeBufferPointer(rebasing: output[..<nonceLength]))
                    && cipher.bind(context) && cipher.process(input, body) && cipher.finish(tag)
            }
        }
        guard isDone else { throw .draining(.cryptoFailure, "AES-256-GCM failed") }
        return sealed
    }
}

/// One operation of the cipher; leaves OpenSSL's error queue empty.
@safe private struct Cipher: ~Copyable {
    private let context: OpaquePointer?
    private let isSealing: Bool

    init(isSealing: Bool) {
        unsafe context = EVP_CIPHER_CTX_new()
        self.isSealing = isSealing
    }

    deinit {
        // Wipes the key schedule.
        unsafe EVP_CIPHER_CTX_free(context)
        if !isSealing { ERR_clear_error() }
    }

    /// The nonce has GCM's default length.
    func begin(_ key: Secret, nonce: UnsafeBufferPointer<UInt8>) -> Bool {
        key.withBytes { key in
            unsafe key.withUnsafeBufferPointer { key in
                unsafe EVP_CipherInit_ex2(
                    context, FetchedCipher.aes256GCM.pointer, key.baseAddress, nonce.baseAddress, isSealing ? 1 : 0, nil
                ) == 1
            }
        }
    }

    func bind(_ bytes: [UInt8]) -> Bool {
        guard !bytes.isEmpty else { return true }
        var written: Int32 = 0
        return unsafe bytes.withUnsafeBufferPointer { bytes in
            unsafe EVP_CipherUpdate(context, nil, &written, bytes.baseAddress, Int32(clamping: bytes.count)) == 1
        }
    }

    /// - Parameter output: at least as long as the input.
    func process(_ input: UnsafeBufferPointer<UInt8>, _ output: UnsafeMutableBufferPointer<UInt8>) -> Bool {
        guard !input.isEmpty else { return true }
        guard let count = Int32(exactly: input.count) else { return false }
        var written: Int32 = 0
        return unsafe EVP_CipherUpdate(context, output.baseAddress, &written, input.baseAddress, count) == 1
            && written == count
    }

    func check(_ tag: UnsafeBufferPointer<UInt8>) -> Bool {
        var written: Int32 = 0
        var scratch: UInt8 = 0
        return unsafe EVP_CIPHER_CTX_ctrl(
            context, EVP_CTRL_AEAD_SET_TAG, Int32(clamping: tag.count),
            UnsafeMutableRawPointer(mutating: tag.baseAddress)
        ) == 1 && EVP_CipherFinal_ex(context, &scratch, &written) == 1
    }

    func finish(_ tag: UnsafeMutableBufferPointer<UInt8>) -> Bool {
        var written: Int32 = 0
        var scratch: UInt8 = 0
        return unsafe EVP_CipherFinal_ex(context, &scratch, &written) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(AES256GCM.tagLength), tag.baseAddress) == 1
    }
}

/// The cipher's implementation, fetched once, because a lookup costs more than sealing a record.
///
/// Unchecked because the pointer is not `Sendable`: a fetched cipher is immutable and thread-safe.
@safe private final class FetchedCipher: @unchecked Sendable {
    static let aes256GCM = FetchedCipher()
    let pointer: OpaquePointer?

    private init() { unsafe pointer = EVP_CIPHER_fetch(nil, "AES-256-GCM", nil) }
}
