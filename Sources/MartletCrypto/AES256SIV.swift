package import MartletCore

/// AES-SIV (RFC 5297) with AES-256: authenticated encryption without a nonce.
///
/// The sealed form is tag ‖ ciphertext. The same bytes, key and context have the same sealed form, and nothing else is
/// lost when a key seals more than once.
package enum AES256SIV {
    /// The length of a key in bytes: those of two AES keys.
    package static let keyLength = 64
    /// The length of the tag before the ciphertext, in bytes: what sealing adds.
    package static let tagLength = 16

    /// Seals bytes with a key.
    /// - Parameter context: associated data that must be the same for opening, such as a record's key; not part of the
    ///   result, and not empty.
    /// - Throws: `crypto.failure`, also for a key that is not 64 bytes, and without bytes.
    package static func seal(_ bytes: [UInt8], with key: Secret, context: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard key.count == keyLength, !bytes.isEmpty, !context.isEmpty else {
            throw CryptoError(.cryptoFailure, "a key, text or context of AES-SIV has the wrong length")
        }
        let cipher = AuthenticatedCipher(.aes256SIV, isSealing: true)
        var sealed = [UInt8](repeating: 0, count: tagLength + bytes.count)
        let isDone = unsafe bytes.withUnsafeBufferPointer { input in
            unsafe sealed.withUnsafeMutableBufferPointer { output in
                unsafe cipher.begin(key) && cipher.bind(context)
                    && cipher.process(input, UnsafeMutableBufferPointer(rebasing: output[tagLength...]))
                    && cipher.finish(UnsafeMutableBufferPointer(rebasing: output[..<tagLength]))
            }
        }
        guard isDone else { throw .draining(.cryptoFailure, "AES-SIV failed") }
        return sealed
    }

    /// Opens sealed bytes.
    /// - Returns: `nil` for another key or context, or if any bit was changed.
    package static func open(_ sealed: [UInt8], with key: Secret, context: [UInt8]) -> Secret? {
        guard sealed.count > tagLength, key.count == keyLength, !context.isEmpty else { return nil }
        let cipher = AuthenticatedCipher(.aes256SIV, isSealing: false)
        var bytes = [UInt8](repeating: 0, count: sealed.count - tagLength)
        let isGenuine = unsafe sealed.withUnsafeBufferPointer { sealed in
            unsafe bytes.withUnsafeMutableBufferPointer { output in
                unsafe cipher.begin(key) && cipher.expect(UnsafeBufferPointer(rebasing: sealed[..<tagLength]))
                    && cipher.bind(context)
                    && cipher.process(UnsafeBufferPointer(rebasing: sealed[tagLength...]), output) && cipher.finish()
            }
        }
        // Owned by a secret in any case, so that unauthenticated plaintext is wiped, too.
        let opened = Secret(bytes)
        return isGenuine ? opened : nil
    }
}
