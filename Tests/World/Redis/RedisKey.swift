/// A key or another name that is looked up by its bytes.
package struct RedisKey: Hashable, Comparable, Sendable {
    package let bytes: [UInt8]

    /// A name of any bytes.
    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package func hash(into hasher: inout Hasher) {
        unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }

    package static func < (left: RedisKey, right: RedisKey) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }

    /// The hash slot: CRC-16 (XMODEM) of the key, or of its hash tag, modulo 16,384.
    package var slot: UInt16 {
        var sum: UInt16 = 0
        for byte in hashedPart {
            sum ^= UInt16(byte) << 8
            for _ in 0..<8 { sum = sum & 0x8000 == 0 ? sum << 1 : sum << 1 ^ 0x1021 }
        }
        return sum % 16_384
    }

    private var hashedPart: ArraySlice<UInt8> {
        guard let open = bytes.firstIndex(of: UInt8(ascii: "{")),
            let close = bytes[(open + 1)...].firstIndex(of: UInt8(ascii: "}")), close > open + 1
        else { return bytes[...] }
        return bytes[(open + 1)..<close]
    }

    /// The position in a scan: FNV-1a, of 48 bits and never 0, which is the beginning.
    var position: UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return hash >> 16 | 1
    }

    /// Whether the key matches a pattern of `*`, `?` and escaped bytes.
    func matches(_ pattern: [UInt8]) -> Bool {
        var (at, offset) = (0, 0)
        // Where the last star stands, and what it has taken so far.
        var star: (pattern: Int, offset: Int)?
        while offset < bytes.count {
            if at < pattern.count, pattern[at] == UInt8(ascii: "*") {
                at += 1
                star = (at, offset)
                continue
            }
            let isEscaped = at + 1 < pattern.count && pattern[at] == UInt8(ascii: "\\")
            let index = isEscaped ? at + 1 : at
            if index < pattern.count,
                pattern[index] == bytes[offset] || (!isEscaped && pattern[index] == UInt8(ascii: "?"))
            {
                (at, offset) = (index + 1, offset + 1)
            } else if let last = star {
                star = (last.pattern, last.offset + 1)
                (at, offset) = (last.pattern, last.offset + 1)
            } else {
                return false
            }
        }
        return pattern[at...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}

extension [UInt8] {
    /// An integer as Redis reads it: no spaces, no plus sign, no leading zeros.
    var integer: Int64? {
        guard (1...20).contains(count), let value = Int64(String(decoding: self, as: UTF8.self)) else { return nil }
        return elementsEqual(String(value).utf8) ? value : nil
    }

    /// A word in lowercase; other bytes than ASCII's are kept.
    var lowercased: String { String(decoding: map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self) }

    /// As text; only for what is shown.
    var text: String { String(decoding: self, as: UTF8.self) }
}
