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
        let cipher = AuthenticatedCipher(.aes256GCM, isSealing: false)
        var bytes = [UInt8](repeating: 0, count: size)
        let isGenuine = unsafe sealed.withUnsafeBufferPointer { sealed in
            unsafe bytes.withUnsafeMutableBufferPointer { output in
                unsafe cipher.begin(key, nonce: UnsafeBufferPointer(rebasing: sealed[..<nonceLength]))
                    && cipher.expect(UnsafeBufferPointer(rebasing: sealed[(nonceLength + size)...]))
                    && cipher.bind(context)
                    && cipher.process(UnsafeBufferPointer(rebasing: sealed[nonceLength..<(nonceLength + size)]), output)
                    && cipher.finish()
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
        let cipher = AuthenticatedCipher(.aes256GCM, isSealing: true)
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
