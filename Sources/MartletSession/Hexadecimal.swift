/// Lowercase hexadecimal as ASCII bytes, the format of the store's keys.
enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    static func encode(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(64)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return text
    }

    /// Parses 1 to 16 digits; `nil` for anything else.
    static func value(_ text: ArraySlice<UInt8>) -> UInt64? {
        guard !text.isEmpty, text.count <= 16 else { return nil }
        var value: UInt64 = 0
        for byte in text {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt64(byte &- 48)
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt64(byte &- 87)
            default: return nil
            }
        }
        return value
    }
}
