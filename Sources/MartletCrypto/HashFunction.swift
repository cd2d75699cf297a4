private import COpenSSL
public import MartletCore

/// The hash functions of signatures: SHA-2 in three lengths (FIPS 180-4).
@frozen public enum HashFunction: Sendable, Hashable, CaseIterable {
    case sha256, sha384, sha512

    /// The bytes in a digest.
    public var length: Int {
        switch self {
        case .sha256: SHA256.length
        case .sha384: 48
        case .sha512: 64
        }
    }

    /// The digest of the bytes.
    public func digest(_ bytes: [UInt8]) -> [UInt8] {
        switch self {
        case .sha256: SHA256.digest(bytes)
        case .sha384: unsafe Self.digest(bytes, by: Self.fetched384, length: length)
        case .sha512: unsafe Self.digest(bytes, by: Self.fetched512, length: length)
        }
    }

    /// The authentication code of a message: HMAC with this hash (RFC 2104).
    public func authenticationCode(of message: [UInt8], key: Secret) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: length)
        let done = key.withBytes { key in
            unsafe key.withUnsafeBufferPointer { key in
                unsafe message.withUnsafeBufferPointer { input in
                    unsafe code.withUnsafeMutableBufferPointer { output in
                        unsafe HMAC(
                            pointer, key.baseAddress, Int32(clamping: key.count), input.baseAddress, input.count,
                            output.baseAddress, nil) != nil
                    }
                }
            }
        }
        precondition(done, "libcrypto has no HMAC")
        return code
    }

    /// OpenSSL's name for it, as signatures and HMAC take it.
    var pointer: OpaquePointer? {
        switch self {
        case .sha256: unsafe EVP_sha256()
        case .sha384: unsafe EVP_sha384()
        case .sha512: unsafe EVP_sha512()
        }
    }

    // Fetched once, like SHA-256, and immutable.
    nonisolated(unsafe) private static let fetched384 = unsafe EVP_MD_fetch(nil, "SHA384", nil)
    // Immutable, too.
    nonisolated(unsafe) private static let fetched512 = unsafe EVP_MD_fetch(nil, "SHA512", nil)

    private static func digest(_ bytes: [UInt8], by algorithm: OpaquePointer?, length: Int) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: length)
        let done = unsafe bytes.withUnsafeBufferPointer { input in
            unsafe digest.withUnsafeMutableBufferPointer { output in
                unsafe EVP_Digest(input.baseAddress, input.count, output.baseAddress, nil, algorithm, nil) == 1
            }
        }
        precondition(done, "libcrypto has no SHA-2")
        return digest
    }
}
