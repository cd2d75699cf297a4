/// The curves of EdDSA (RFC 8032 §5.1, §5.2).
enum EdwardsCurve: Sendable {
    case ed25519, ed448

    /// OpenSSL's name.
    var name: String {
        switch self {
        case .ed25519: "ED25519"
        case .ed448: "ED448"
        }
    }

    /// The length of a point, and of each half of a signature, in bytes.
    var length: Int {
        switch self {
        case .ed25519: 32
        case .ed448: 57
        }
    }

    /// The prime of the field, big-endian.
    private var prime: [UInt8] {
        switch self {
        case .ed25519: [0x7F] + [UInt8](repeating: 0xFF, count: 30) + [0xED]
        case .ed448: [UInt8](repeating: 0xFF, count: 27) + [0xFE] + [UInt8](repeating: 0xFF, count: 28)
        }
    }

    /// Checks that bytes are a key: OpenSSL takes any, and for a point of small order no private key is
    /// needed to sign.
    ///
    /// - Throws: `crypto.bad_key` for the wrong length, a y that is not reduced or has no point, or a negative zero;
    ///   `crypto.weak_key` for a point of small order.
    func check(_ encoded: [UInt8]) throws(CryptoError) {
        guard encoded.count == length, let last = encoded.last else {
            throw CryptoError(.cryptoBadKey, "an \(name) key is not \(length) bytes")
        }
        let field = try PrimeField(modulus: prime)
        let y = try BigNumber(Array((encoded.dropLast() + [last & 0x7F]).reversed()))
        guard y < field.modulus else { throw CryptoError(.cryptoBadKey, "y is not below the prime of \(name)") }

        // x² = scale · (1 - y²) / (factor · y² + offset), where the denominator is never zero.
        let square = try field.multiply(y, y)
        let one = try BigNumber(1)
        let above = try field.subtract(one, square)
        let numerator: BigNumber
        let denominator: BigNumber
        switch self {
        case .ed25519:
            numerator = try field.multiply(try BigNumber(121_666), above)
            denominator = try field.subtract(
                try field.multiply(try BigNumber(121_665), square), try BigNumber(121_666))
        case .ed448:
            numerator = try field.multiply(one, above)
            denominator = try field.add(try field.multiply(try BigNumber(39_081), square), one)
        }
        guard field.isSquare(try field.multiply(numerator, denominator)) else {
            throw CryptoError(.cryptoBadKey, "the point is not on \(name)")
        }
        // Order 1, 2 or 4: x or y is zero. Order 8: doubled, y is zero, and so are x² + y² or x² - y² before.
        let scaled = try field.multiply(square, denominator)
        let doubled =
            switch self {
            case .ed25519: try field.add(numerator, scaled)
            case .ed448: try field.subtract(numerator, scaled)
            }
        guard !above.isZero, !y.isZero, !doubled.isZero else {
            throw CryptoError(.cryptoWeakKey, "the point is of small order")
        }
    }
}
