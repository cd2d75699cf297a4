internal import COpenSSL

/// Owns an OpenSSL key.
///
/// Unchecked because the pointer is not `Sendable`: the key is not changed after `init`, and OpenSSL 3 allows
/// concurrent use of one `EVP_PKEY` (its reference count and cached values are synchronized).
@safe final class KeyHandle: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Takes ownership of one reference.
    init(_ pointer: OpaquePointer) { unsafe self.pointer = pointer }

    deinit { unsafe EVP_PKEY_free(pointer) }

    var isRSA: Bool { unsafe EVP_PKEY_is_a(pointer, "RSA") == 1 }
    var isEC: Bool { unsafe EVP_PKEY_is_a(pointer, "EC") == 1 }

    /// The size in bits: of the modulus for RSA, of the order for EC.
    var bits: Int { Int(unsafe EVP_PKEY_get_bits(pointer)) }

    /// The curve of an EC key, by OpenSSL's name.
    var curve: String? {
        var name = [UInt8](repeating: 0, count: 64)
        var length = 0
        let found = unsafe name.withUnsafeMutableBytes { name in
            unsafe EVP_PKEY_get_group_name(
                pointer, name.baseAddress?.assumingMemoryBound(to: CChar.self), name.count, &length) == 1
        }
        guard found else {
            ERR_clear_error()
            return nil
        }
        return String(decoding: name.prefix(length), as: UTF8.self)
    }

    /// A number of the key, such as the modulus, as at least `length` big-endian bytes.
    func number(_ name: String, length: Int = 0) -> [UInt8]? {
        var number: OpaquePointer? = nil
        guard unsafe EVP_PKEY_get_bn_param(pointer, name, &number) == 1, let number = unsafe number else {
            ERR_clear_error()
            return nil
        }
        defer { unsafe BN_free(number) }
        let size = max(length, (Int(unsafe BN_num_bits(number)) + 7) / 8)
        var bytes = [UInt8](repeating: 0, count: size)
        let written = unsafe bytes.withUnsafeMutableBufferPointer { output in
            unsafe BN_bn2binpad(number, output.baseAddress, Int32(clamping: output.count))
        }
        return Int(written) == size ? bytes : nil
    }

    /// The public half.
    /// - Throws: `crypto.bad_key` for anything but RSA and P-256.
    func publicParts() throws(CryptoError) -> PublicKeyParts {
        if isRSA, let modulus = number("n"), let exponent = number("e") {
            return .rsa(modulus: modulus, exponent: exponent)
        }
        if isEC, bits == 256, curve == "prime256v1",
            let x = number("qx", length: EllipticCurve.p256.length),
            let y = number("qy", length: EllipticCurve.p256.length)
        {
            return .p256(x: x, y: y)
        }
        throw CryptoError(.cryptoBadKey, "neither an RSA nor a P-256 key")
    }
}
