/// Base64 with the standard alphabet (RFC 4648 §4), decoded strictly: each value has exactly one encoding.
public enum Base64 {
    /// Whether the text is padded with `=`.
    public enum Padding: Sendable { case required, absent }

    /// Decodes strictly.
    ///
    /// - Returns: `nil` for a byte outside the alphabet, white space, an impossible length, missing or unexpected
    ///   padding, or nonzero trailing bits.
    public static func decode(_ text: ArraySlice<UInt8>, padding: Padding) -> [UInt8]? {
        var digits = Array(text)
        if padding == .required {
            guard text.count % 4 == 0 else { return nil }
            // What is left of longer padding is no digit.
            for _ in 0..<2 where digits.last == UInt8(ascii: "=") { digits.removeLast() }
        }
        // Digits that only base64url has become invalid bytes, so that one decoder serves both alphabets.
        for index in digits.indices {
            let byte = digits[index]
            let isForeign = byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
            digits[index] =
                byte == UInt8(ascii: "+")
                ? UInt8(ascii: "-")
                : byte == UInt8(ascii: "/") ? UInt8(ascii: "_") : isForeign ? UInt8(ascii: "=") : byte
        }
        return Base64URL.decode(digits)
    }

    /// Encodes bytes.
    public static func encode(_ bytes: [UInt8], padding: Padding) -> String {
        var text = Base64URL.encode(bytes).utf8.map { byte in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        while padding == .required, text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }
}
