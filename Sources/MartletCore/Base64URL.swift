/// Base64url without padding, as in tokens and keys (RFC 4648 §5, RFC 7515 §2).
public enum Base64URL {
    /// Decodes strictly: each value has exactly one encoding.
    ///
    /// - Returns: `nil` for padding, white space, any other byte outside the alphabet, an impossible length, or nonzero
    ///   trailing bits.
    public static func decode(_ text: [UInt8]) -> [UInt8]? {
        unsafe text.withUnsafeBufferPointer { unsafe decodeBlocks($0) }
    }

    /// Decodes a slice of a larger array.
    public static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        unsafe text.withUnsafeBufferPointer { unsafe decodeBlocks($0) }
    }

    /// Decodes the UTF-8 bytes of a string.
    public static func decode(_ text: String) -> [UInt8]? { decode(Array(text.utf8)) }

    /// Encodes without padding.
    public static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count &* 4 &+ 2) / 3)
        append(bytes, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends the encoding to `text`, for secrets that must not leave copies in strings.
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
}
