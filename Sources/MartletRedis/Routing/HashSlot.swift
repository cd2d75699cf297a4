/// The hash slot of a key: the part of a Redis Cluster's keys that one node holds.
///
/// CRC-16 (XMODEM) of the key, or of its hash tag, modulo 16,384 (Redis Cluster Specification, "Key distribution
/// model").
struct HashSlot: Sendable, Hashable {
    static let count: UInt16 = 16_384

    let number: UInt16

    init(_ number: UInt16) { self.number = number % HashSlot.count }

    /// The slot of a key.
    init(of key: [UInt8]) {
        number = HashSlot.checksum(HashSlot.hashedPart(of: key)) % HashSlot.count
    }

    /// What stands between the first `{` and the first `}` after it, unless that is empty.
    private static func hashedPart(of key: [UInt8]) -> ArraySlice<UInt8> {
        guard let open = key.firstIndex(of: 0x7B), let close = key[(open + 1)...].firstIndex(of: 0x7D),
            close > open + 1
        else { return key[...] }
        return key[(open + 1)..<close]
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt16 {
        var sum: UInt16 = 0
        for byte in bytes {
            sum ^= UInt16(byte) << 8
            for _ in 0..<8 { sum = sum & 0x8000 == 0 ? sum << 1 : sum << 1 ^ 0x1021 }
        }
        return sum
    }
}
