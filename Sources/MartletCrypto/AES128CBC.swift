private import COpenSSL
public import MartletCore

/// AES-128 in CBC mode with PKCS #7 padding, for protocols that require it: confidential, but not authenticated.
///
/// An attacker who can change the ciphertext and learns whether the padding was valid can decrypt it (padding oracle).
/// So invalid padding is not an error here: the caller continues as if it were valid and rejects at the end, together
/// with all other checks.
public enum AES128CBC {
    /// The bytes in a block, in a key and in an initialization vector.
    public static let blockLength = 16

    /// The result of a decryption.
    public struct Opened: Sendable {
        /// Without the padding if it is valid, else all decrypted bytes.
        public let bytes: [UInt8]
        public let isPaddingValid: Bool
    }

    /// Decrypts bytes.
    /// - Returns: `nil` when the key, the vector or the ciphertext has an invalid length.
    public static func decrypt(_ ciphertext: [UInt8], key: Secret, iv: [UInt8]) -> Opened? {
        guard !ciphertext.isEmpty, ciphertext.count % blockLength == 0,
            let plain = run(ciphertext, key: key, iv: iv, encrypts: false)
        else { return nil }
        let length = paddingLength(of: plain)
        return Opened(bytes: Array(plain.prefix(plain.count - length)), isPaddingValid: length > 0)
    }

    /// Encrypts bytes.
    /// - Returns: `nil` when the key or the vector has an invalid length.
    public static func encrypt(_ plaintext: [UInt8], key: Secret, iv: [UInt8]) -> [UInt8]? {
        let length = blockLength - plaintext.count % blockLength
        return run(
            plaintext + [UInt8](repeating: UInt8(length), count: length), key: key, iv: iv, encrypts: true)
    }

    /// The padding length, 1 to 16, or 0 for invalid padding; reads every byte of the last block.
    private static func paddingLength(of plain: [UInt8]) -> Int {
        let block = plain.suffix(blockLength)
        let last = UInt16(block.last ?? 0)
        // A mask of ones if true, else 0: no branch depends on the plaintext.
        var isValid: UInt16 = below(0, last) & below(last, UInt16(blockLength) + 1)
        for (index, byte) in block.enumerated() {
            let isPadding = below(UInt16(blockLength - 1 - index), last)
            isValid &= ~isPadding | isZero(UInt16(byte) ^ last)
        }
        return Int(last & isValid)
    }

    private static func below(_ left: UInt16, _ right: UInt16) -> UInt16 { 0 &- ((left &- right) &>> 15) }

    private static func isZero(_ value: UInt16) -> UInt16 { below(value, 1) }

    /// Runs the cipher over whole blocks, without padding.
    private static func run(_ input: [UInt8], key: Secret, iv: [UInt8], encrypts: Bool) -> [UInt8]? {
        guard key.count == blockLength, iv.count == blockLength, input.count <= Int(Int32.max) - blockLength,
            let context = unsafe EVP_CIPHER_CTX_new()
        else { return nil }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: input.count)
        var written: Int32 = 0
        let isDone = key.withBytes { key in
            unsafe EVP_CipherInit_ex(context, EVP_aes_128_cbc(), nil, key, iv, encrypts ? 1 : 0) == 1
                && EVP_CIPHER_CTX_set_padding(context, 0) == 1
                && EVP_CipherUpdate(context, &output, &written, input, Int32(input.count)) == 1
        }
        guard isDone, Int(written) == input.count else {
            ERR_clear_error()
            return nil
        }
        return output
    }
}
