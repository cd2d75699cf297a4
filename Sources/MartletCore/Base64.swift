/// Base64 with the standard alphabet (RFC 4648 §4), strict: every value has exactly one spelling.
public enum Base64 {
    /// Whether the end is filled up with `=`.
    public enum Padding: Sendable { case required, absent }

    /// Decodes strictly.
    ///
    /// - Returns: `nil` for a foreign byte, white space, an impossible length, padding that is missing or not wanted, or
    ///   spare bits that are not zero.
    public static func decode(_ text: ArraySlice<UInt8>, padding: Padding) -> [UInt8]? {
        var digits = text
        if padding == .required {
            guard text.count % 4 == 0 else { return nil }
            let filling = text.reversed().prefix { $0 == UInt8(ascii: "=") }.count
            guard filling <= 2 else { return nil }
            digits = text.dropLast(filling)
        }
        // The other alphabet's own digits become foreign bytes, so that one decoder serves both.
        return Base64URL.decode(
            digits.map { byte in
                switch byte {
                case UInt8(ascii: "+"): UInt8(ascii: "-")
                case UInt8(ascii: "/"): UInt8(ascii: "_")
                case UInt8(ascii: "-"), UInt8(ascii: "_"): UInt8(ascii: "=")
                default: byte
                }
            })
    }

    /// Encodes.
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
