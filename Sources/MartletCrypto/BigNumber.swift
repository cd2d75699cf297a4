private import COpenSSL

/// An owned `BIGNUM` of OpenSSL, not negative.
@safe struct BigNumber: ~Copyable {
    let pointer: OpaquePointer

    /// - Parameter bytes: big-endian.
    init(_ bytes: [UInt8] = []) throws(CryptoError) {
        let number = unsafe bytes.withUnsafeBufferPointer { input in
            unsafe BN_bin2bn(input.baseAddress, Int32(clamping: input.count), nil)
        }
        guard let number = unsafe number else { throw .draining(.cryptoFailure, "no big number") }
        unsafe pointer = number
    }

    init(_ word: UInt32) throws(CryptoError) {
        try self.init((0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) })
    }

    deinit { unsafe BN_free(pointer) }

    var isZero: Bool { unsafe BN_is_zero(pointer) == 1 }

    static func < (left: borrowing BigNumber, right: borrowing BigNumber) -> Bool {
        unsafe BN_cmp(left.pointer, right.pointer) < 0
    }
}

/// Arithmetic modulo a prime, for public numbers: it takes no constant time.
@safe struct PrimeField: ~Copyable {
    let modulus: BigNumber
    private let scratch: OpaquePointer

    init(modulus: [UInt8]) throws(CryptoError) {
        let modulus = try BigNumber(modulus)
        guard let context = unsafe BN_CTX_new() else { throw .draining(.cryptoFailure, "no big number context") }
        self.modulus = modulus
        unsafe scratch = context
    }

    deinit { unsafe BN_CTX_free(scratch) }

    func multiply(
        _ left: borrowing BigNumber, _ right: borrowing BigNumber
    ) throws(CryptoError) -> BigNumber {
        let result = try BigNumber()
        guard unsafe BN_mod_mul(result.pointer, left.pointer, right.pointer, modulus.pointer, scratch) == 1 else {
            throw .draining(.cryptoFailure, "multiplication failed")
        }
        return result
    }

    func add(_ left: borrowing BigNumber, _ right: borrowing BigNumber) throws(CryptoError) -> BigNumber {
        let result = try BigNumber()
        guard unsafe BN_mod_add(result.pointer, left.pointer, right.pointer, modulus.pointer, scratch) == 1 else {
            throw .draining(.cryptoFailure, "addition failed")
        }
        return result
    }

    func subtract(_ left: borrowing BigNumber, _ right: borrowing BigNumber) throws(CryptoError) -> BigNumber {
        let result = try BigNumber()
        guard unsafe BN_mod_sub(result.pointer, left.pointer, right.pointer, modulus.pointer, scratch) == 1 else {
            throw .draining(.cryptoFailure, "subtraction failed")
        }
        return result
    }

    /// Whether the number has a square root; zero has one.
    func isSquare(_ number: borrowing BigNumber) -> Bool {
        let symbol = unsafe BN_kronecker(number.pointer, modulus.pointer, scratch)
        return symbol == 0 || symbol == 1
    }
}
