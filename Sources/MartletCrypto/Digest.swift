private import COpenSSL
public import MartletCore

/// SHA-256.
public enum SHA256 {
    /// The bytes in a digest.
    public static let length = 32

    /// Fetched once: OpenSSL's one-shot functions fetch it each time, which takes longer than digesting a short text.
    ///
    /// The algorithm it points to is immutable.
    nonisolated(unsafe) fileprivate static let algorithm = unsafe EVP_MD_fetch(nil, "SHA256", nil)

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

    /// A key whose own part of the work is done once: each code begins with copies of two states of SHA-256, in which
    /// the key is hashed already. Thread-safe, because these states are copied and never changed.
    @safe package final class Key: Sendable {
        private static let blockBytes = 64

        // Set once, and only copied from until `deinit`.
        nonisolated(unsafe) private let inner: OpaquePointer?
        // Like the inner one.
        nonisolated(unsafe) private let outer: OpaquePointer?

        package init(_ secret: Secret) {
            let key = secret.count > Self.blockBytes ? Secret(secret.withBytes(SHA256.digest)) : secret
            unsafe inner = Self.state(key, 0x36)
            unsafe outer = Self.state(key, 0x5C)
        }

        // OpenSSL zeroes what it frees.
        deinit {
            unsafe EVP_MD_CTX_free(inner)
            unsafe EVP_MD_CTX_free(outer)
        }

        private static func state(_ key: Secret, _ pad: UInt8) -> OpaquePointer? {
            let block = Secret(
                key.withBytes { key in (0..<blockBytes).map { ($0 < key.count ? key[$0] : 0) ^ pad } })
            let context = unsafe EVP_MD_CTX_new()
            let done = block.withBytes { block in
                unsafe EVP_DigestInit_ex(context, SHA256.algorithm, nil) == 1
                    && EVP_DigestUpdate(context, block, block.count) == 1
            }
            precondition(done, "libcrypto has no SHA-256")
            return unsafe context
        }

        /// The authentication code of a message.
        package func authenticate(_ message: [UInt8]) -> [UInt8] {
            var code = [UInt8](repeating: 0, count: SHA256.length)
            let context = unsafe EVP_MD_CTX_new()
            defer { unsafe EVP_MD_CTX_free(context) }
            let done = unsafe message.withUnsafeBufferPointer { input in
                unsafe code.withUnsafeMutableBufferPointer { output in
                    unsafe EVP_MD_CTX_copy_ex(context, inner) == 1
                        && EVP_DigestUpdate(context, input.baseAddress, input.count) == 1
                        && EVP_DigestFinal_ex(context, output.baseAddress, nil) == 1
                        && EVP_MD_CTX_copy_ex(context, outer) == 1
                        && EVP_DigestUpdate(context, output.baseAddress, output.count) == 1
                        && EVP_DigestFinal_ex(context, output.baseAddress, nil) == 1
                }
            }
            precondition(done, "libcrypto has no SHA-256")
            return code
        }
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
