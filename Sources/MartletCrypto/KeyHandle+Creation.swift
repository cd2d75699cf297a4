private import COpenSSL

extension KeyHandle {
    /// An RSA public key from big-endian numbers.
    convenience init(modulus: [UInt8], exponent: [UInt8]) throws(CryptoError) {
        let n = try BigNumber(modulus)
        let e = try BigNumber(exponent)
        let made = unsafe try Self.make(type: "RSA") { builder in
            unsafe martlet_push_rsa(builder, n.pointer, e.pointer) == 1
        }
        unsafe self.init(made)
    }

    /// A public key from the coordinates of its point, which must lie on the curve.
    convenience init(_ curve: EllipticCurve, x: [UInt8], y: [UInt8]) throws(CryptoError) {
        guard x.count == curve.length, y.count == curve.length else {
            throw CryptoError(.cryptoBadKey, "a P-\(curve.bits) coordinate is not \(curve.length) bytes")
        }
        try self.init(curve, point: [0x04] + x + y)
        guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, pointer, nil) else {
            throw .draining(.cryptoFailure, "no key context")
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        guard unsafe EVP_PKEY_public_check(context) == 1 else {
            throw .draining(.cryptoBadKey, "the point is not on P-\(curve.bits)")
        }
    }

    private convenience init(_ curve: EllipticCurve, point: [UInt8]) throws(CryptoError) {
        var made: OpaquePointer? = nil
        var failure: CryptoError? = nil
        // The builder stores a pointer to the point, which must be valid until the key is created.
        unsafe point.withUnsafeBufferPointer { point in
            do throws(CryptoError) {
                unsafe made = try Self.make(type: "EC") { builder in
                    unsafe martlet_push_ec(builder, curve.bits, point.baseAddress, point.count) == 1
                }
            } catch { failure = error }
        }
        guard let made = unsafe made else { throw failure ?? CryptoError(.cryptoFailure, "no key") }
        unsafe self.init(made)
    }

    /// A public key of EdDSA from its encoded point.
    convenience init(_ curve: EdwardsCurve, point: [UInt8]) throws(CryptoError) {
        try curve.check(point)
        let made = unsafe point.withUnsafeBufferPointer { point in
            unsafe EVP_PKEY_new_raw_public_key_ex(nil, curve.name, nil, point.baseAddress, point.count)
        }
        guard let made = unsafe made else { throw .draining(.cryptoBadKey, "not an \(curve.name) public key") }
        unsafe self.init(made)
    }

    private static func make(type: String, push: (OpaquePointer) -> Bool) throws(CryptoError) -> OpaquePointer {
        guard let builder = unsafe OSSL_PARAM_BLD_new() else { throw .draining(.cryptoFailure, "no parameter builder") }
        defer { unsafe OSSL_PARAM_BLD_free(builder) }
        guard unsafe push(builder), let parameters = unsafe OSSL_PARAM_BLD_to_param(builder) else {
            throw .draining(.cryptoFailure, "no key parameters")
        }
        defer { unsafe OSSL_PARAM_free(parameters) }
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, type, nil) else {
            throw .draining(.cryptoFailure, "no \(type) in libcrypto")
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer? = nil
        guard unsafe EVP_PKEY_fromdata_init(context) == 1,
            unsafe martlet_public_key_from_data(context, &key, parameters) == 1, let key = unsafe key
        else { throw .draining(.cryptoBadKey, "not an \(type) public key") }
        return unsafe key
    }
}
