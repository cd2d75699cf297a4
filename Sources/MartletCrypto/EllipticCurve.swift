/// The curves of ECDSA (FIPS 186-4 D.1.2), with their hashes and the two encodings of their signatures.
enum EllipticCurve: Sendable {
    case p256, p384, p521

    /// The size in bits.
    var bits: Int32 {
        switch self {
        case .p256: 256
        case .p384: 384
        case .p521: 521
        }
    }

    /// The length of a coordinate, and of each half of a signature, in bytes.
    var length: Int {
        switch self {
        case .p256: 32
        case .p384: 48
        case .p521: 66
        }
    }

    /// The hash of ES256, ES384 and ES512 (RFC 7518 §3.4).
    var hash: HashFunction {
        switch self {
        case .p256: .sha256
        case .p384: .sha384
        case .p521: .sha512
        }
    }

    /// The order of the group, big-endian.
    private var order: [UInt8] {
        switch self {
        case .p256: Self.order256
        case .p384: Self.order384
        case .p521: Self.order521
        }
    }

    private static let order256: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
    ]
    private static let order384: [UInt8] =
        [UInt8](repeating: 0xFF, count: 24) + [
            0xC7, 0x63, 0x4D, 0x81, 0xF4, 0x37, 0x2D, 0xDF, 0x58, 0x1A, 0x0D, 0xB2,
            0x48, 0xB0, 0xA7, 0x7A, 0xEC, 0xEC, 0x19, 0x6A, 0xCC, 0xC5, 0x29, 0x73,
        ]
    private static let order521: [UInt8] =
        [0x01] + [UInt8](repeating: 0xFF, count: 32) + [
            0xFA, 0x51, 0x86, 0x87, 0x83, 0xBF, 0x2F, 0x96, 0x6B, 0x7F, 0xCC, 0x01, 0x48, 0xF7, 0x09, 0xA5, 0xD0,
            0x3B, 0xB5, 0xC9, 0xB8, 0x89, 0x9C, 0x47, 0xAE, 0xBB, 0x6F, 0xB7, 0x1E, 0x91, 0x38, 0x64, 0x09,
        ]

    /// The DER encoding of the JWS form r‖s; `nil` unless it is twice the length with 0 < r, s < n.
    func derSignature(raw: [UInt8]) -> [UInt8]? {
        guard raw.count == 2 * length else { return nil }
        let halves = [raw[..<length], raw[length...]]
        let order = order
        guard halves.allSatisfy({ Self.isInRange($0, below: order) }) else { return nil }
        let body = halves.flatMap(Self.integer)
        // From 128 bytes on, which only P-521 reaches, the length takes a byte of its own.
        let long: [UInt8] = body.count < 0x80 ? [] : [0x81]
        return [0x30] + long + [UInt8(truncatingIfNeeded: body.count)] + body
    }

    /// The JWS form r‖s of a DER signature from OpenSSL; for P-256 alone, with which the gateway signs.
    static func rawP256Signature(der: [UInt8]) -> [UInt8]? {
        let length = EllipticCurve.p256.length
        var rest = der[...]
        guard rest.popFirst() == 0x30, let size = rest.popFirst(), rest.count == Int(size) else { return nil }
        var raw: [UInt8] = []
        for _ in 0..<2 {
            guard rest.popFirst() == 0x02, let size = rest.popFirst(), rest.count >= Int(size) else { return nil }
            let value = rest.prefix(Int(size)).drop { $0 == 0 }
            rest = rest.dropFirst(Int(size))
            guard value.count <= length else { return nil }
            raw += [UInt8](repeating: 0, count: length - value.count) + value
        }
        return rest.isEmpty ? raw : nil
    }

    private static func isInRange(_ value: ArraySlice<UInt8>, below order: [UInt8]) -> Bool {
        value.contains { $0 != 0 } && value.lexicographicallyPrecedes(order)
    }

    /// A DER integer: shortest form, not negative.
    private static func integer(_ value: ArraySlice<UInt8>) -> [UInt8] {
        let digits = value.drop { $0 == 0 }
        let pad: [UInt8] = (digits.first ?? 0) >= 0x80 ? [0] : []
        return [0x02, UInt8(truncatingIfNeeded: pad.count + digits.count)] + pad + digits
    }
}
