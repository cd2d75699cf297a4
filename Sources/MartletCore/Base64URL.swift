/// Base64url without padding, as tokens and keys use it (RFC 4648 §5, RFC 7515 §2).
public enum Base64URL {
    /// Decodes strictly, so that every value has exactly one spelling.
    ///
    /// - Returns: `nil` for padding, white space, any other foreign byte, an impossible length, or spare bits that are not zero.
    public static func decode(_ text: [UInt8]) -> [UInt8]? { decode(text.span) }

    /// Decodes a part of a larger run of bytes.
    public static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? { decode(text.span) }

    /// Decodes a text.
    public static func decode(_ text: String) -> [UInt8]? { decode(Array(text.utf8)) }

    private static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        let tail = text.count % 4
        guard tail != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 &* 3 &+ 2)
        var bits: UInt32 = 0
        var held = 0
        for index in text.indices {
            let digit = digits[Int(text[index])]
            guard digit < 64 else { return nil }
            bits = bits &<< 6 | UInt32(digit)
            held &+= 6
            if held >= 8 {
                held &-= 8
                bytes.append(UInt8(truncatingIfNeeded: bits &>> UInt32(held)))
            }
        }
        guard bits & (1 &<< UInt32(held) &- 1) == 0 else { return nil }
        return bytes
    }

    /// Encodes without padding.
    public static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count &* 4 &+ 2) / 3)
        append(bytes, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Encodes without padding at the end of a text, for secrets that must not leave copies behind in strings.
    public static func append(_ bytes: [UInt8], to text: inout [UInt8]) {
        var bits: UInt32 = 0
        var held = 0
        for byte in bytes {
            bits = bits &<< 8 | UInt32(byte)
            held &+= 8
            while held >= 6 {
                held &-= 6
                text.append(alphabet[Int(bits &>> UInt32(held) & 63)])
            }
        }
        if held > 0 { text.append(alphabet[Int(bits &<< UInt32(6 &- held) & 63)]) }
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// What each byte stands for; 255 where it stands for nothing.
    private static let digits: [UInt8] = {
        var table = [UInt8](repeating: 255, count: 256)
        for (value, byte) in alphabet.enumerated() { table[Int(byte)] = UInt8(value) }
        return table
    }()
}
