/// The curve of ES256 (FIPS 186-4 D.1.2.3) and the two encodings of its signatures.
enum P256 {
    /// The length of a coordinate, and of each half of a signature, in bytes.
    static let length = 32

    /// The order of the group, big-endian.
    private static let order: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
    ]

    /// The DER encoding of the JWS form r‖s; `nil` unless it is 64 bytes with 0 < r, s < n.
    static func derSignature(raw: [UInt8]) -> [UInt8]? {
        guard raw.count == 2 * length else { return nil }
        let halves = [raw[..<length], raw[length...]]
        guard halves.allSatisfy(isInRange) else { return nil }
        let body = halves.flatMap(integer)
        return [0x30, UInt8(truncatingIfNeeded: body.count)] + body
    }

    /// The JWS form r‖s of a DER signature from OpenSSL.
    static func rawSignature(der: [UInt8]) -> [UInt8]? {
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

    private static func isInRange(_ value: ArraySlice<UInt8>) -> Bool {
        value.contains { $0 != 0 } && value.lexicographicallyPrecedes(order)
    }

    /// A DER integer: shortest form, not negative.
    private static func integer(_ value: ArraySlice<UInt8>) -> [UInt8] {
        let digits = value.drop { $0 == 0 }
        let pad: [UInt8] = (digits.first ?? 0) >= 0x80 ? [0] : []
        return [0x02, UInt8(truncatingIfNeeded: pad.count + digits.count)] + pad + digits
    }
}
