private import COpenSSL
public import MartletCore

/// SHA-256.
public enum SHA256 {
    /// The bytes in a digest.
    public static let length = 32

    /// Fetched once: OpenSSL's one-shot functions fetch it each time, which takes longer than digesting a short text.
    ///
    /// The algorithm it points to is immutable.
    nonisolated(unsafe) private static let algorithm = unsafe EVP_MD_fetch(nil, "SHA256", nil)

    /// The digest of the bytes.
    public static func digest(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: length)
        let done = unsafe bytes.withUnsafeBufferPointer { input in
            unsafe digest.withUnsafeMutableBufferPointer { output in
                unsafe EVP_Digest(input.baseAddress, input.count, output.baseAddress, nil, algorithm, nil) == 1
            }
        }
        precondition(done, "libcrypto has no SHA-256")
        return digest
    }
}

/// SHA-1, for protocols that require it as a fingerprint or a checksum.
///
/// Not collision-resistant: where an attacker can choose the input, use `SHA256`.
public enum SHA1 {
    /// The bytes in a digest.
    public static let length = 20

    /// The digest of the bytes.
    public static func digest(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: length)
        let done = unsafe bytes.withUnsafeBufferPointer { input in
            unsafe digest.withUnsafeMutableBufferPointer { output in
                unsafe COpenSSL.SHA1(input.baseAddress, input.count, output.baseAddress) != nil
            }
        }
        precondition(done, "libcrypto has no SHA-1")
        return digest
    }
}

/// HMAC with SHA-256 (RFC 2104).
public enum HMACSHA256 {
    /// The authentication code of a message.
    public static func authenticate(_ message: [UInt8], key: Secret) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: SHA256.length)
        let done = key.withBytes { key in
            unsafe key.withUnsafeBufferPointer { key in
                unsafe message.withUnsafeBufferPointer { input in
                    unsafe code.withUnsafeMutableBufferPointer { output in
                        unsafe HMAC(
                            EVP_sha256(), key.baseAddress, Int32(clamping: key.count), input.baseAddress, input.count,
                            output.baseAddress, nil) != nil
                    }
                }
            }
        }
        precondition(done, "libcrypto has no HMAC")
        return code
    }
}

/// Cryptographically secure random bytes.
public enum RandomBytes {
    /// - Throws: `crypto.failure` when the system provides no entropy.
    public static func make(_ count: Int) throws(CryptoError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let done = unsafe bytes.withUnsafeMutableBufferPointer { output in
            unsafe RAND_bytes(output.baseAddress, Int32(clamping: output.count)) == 1
        }
        guard done else { throw .draining(.cryptoFailure, "no random bytes") }
        return bytes
    }
}

/// Constant-time comparison of secrets.
public enum ConstantTime {
    /// Whether both arrays are equal, in a time that depends on their lengths only.
    public static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe left.withUnsafeBytes { left in
            unsafe right.withUnsafeBytes { right in
                unsafe CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
            }
        }
    }
}
