internal import MartletCore

/// Finds out what a private key in PKCS #8 is for, when it is not the one that is needed.
enum PrivateKeyKind {
    /// The algorithm is within the first bytes of the key (RFC 5208 §5).
    private static let headBytes = 48

    /// Object identifiers of algorithms and curves, in DER; curves first, because they stand behind the algorithm's.
    private static let kinds: [(identifier: [UInt8], name: String)] = [
        ([0x2B, 0x81, 0x04, 0x00, 0x22], "a P-384 key"),
        ([0x2B, 0x81, 0x04, 0x00, 0x23], "a P-521 key"),
        ([0x2B, 0x81, 0x04, 0x00, 0x0A], "a secp256k1 key"),
        ([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07], "a P-256 key that is damaged"),
        ([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01], "a key on another elliptic curve"),
        ([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01], "an RSA key"),
        ([0x2B, 0x65, 0x6E], "an X25519 key"), ([0x2B, 0x65, 0x6F], "an X448 key"),
        ([0x2B, 0x65, 0x70], "an Ed25519 key"), ([0x2B, 0x65, 0x71], "an Ed448 key"),
    ]

    /// - Parameter pem: with the boundaries of `PRIVATE KEY`.
    /// - Returns: `nil` if the algorithm is not known, or the text is not that of a key.
    static func find(in pem: [UInt8]) -> String? {
        guard let der = head(of: pem) else { return nil }
        return kinds.first { kind in
            // With its tag and its length, so that no other bytes are taken for it.
            let element = [0x06, UInt8(truncatingIfNeeded: kind.identifier.count)] + kind.identifier
            return der.indices.contains { der[$0...].starts(with: element) }
        }?.name
    }

    /// The first bytes between the boundaries.
    private static func head(of pem: [UInt8]) -> [UInt8]? {
        let lines = pem.split { $0 == 0x0A || $0 == 0x0D }.map { Array($0) }
        let mark = Array("-----".utf8)
        guard let start = lines.firstIndex(where: { $0.starts(with: mark) }) else { return nil }
        let digits = lines[(start + 1)...].prefix { !$0.starts(with: mark) }.joined().filter { $0 > 0x20 }
        return decode(digits.prefix(headBytes / 3 * 4))
    }

    /// Base64 of whole groups, without padding.
    private static func decode(_ digits: some Collection<UInt8>) -> [UInt8]? {
        let whole = digits.map { digit -> UInt8 in
            switch digit {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: digit
            }
        }
        return Base64URL.decode(Array(whole.prefix(whole.count / 4 * 4)))
    }
}
