/// Makes JSON text readable in which a nickname is not: some have half a character, or bytes of another encoding.
enum TextRepair {
    private static let replacement = Array(#"\ufffd"#.utf8)

    /// Replaces what is not UTF-8, and escaped surrogates without their other half (RFC 8259 §8.2), by U+FFFD.
    static func repaired(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        var rest = Array(String(decoding: bytes, as: UTF8.self).utf8)[...]
        while let byte = rest.first {
            guard byte == UInt8(ascii: "\\") else {
                text.append(byte)
                rest = rest.dropFirst()
                continue
            }
            guard let unit = escapedUnit(rest) else {
                text += rest.prefix(2)
                rest = rest.dropFirst(2)
                continue
            }
            let isPair = (0xD800...0xDBFF).contains(unit) && hasLowHalf(rest.dropFirst(6))
            let isHalf = !isPair && (0xD800...0xDFFF).contains(unit)
            let length = isPair ? 12 : 6
            text += isHalf ? replacement[...] : rest.prefix(length)
            rest = rest.dropFirst(length)
        }
        return text
    }

    private static func hasLowHalf(_ text: ArraySlice<UInt8>) -> Bool {
        escapedUnit(text).map { (0xDC00...0xDFFF).contains($0) } ?? false
    }

    /// The value of `\u` and four hexadecimal digits at the beginning of a text.
    private static func escapedUnit(_ text: ArraySlice<UInt8>) -> UInt16? {
        let escape = text.prefix(6)
        guard escape.count == 6, escape.starts(with: Array(#"\u"#.utf8)) else { return nil }
        return UInt16(String(decoding: escape.dropFirst(2), as: UTF8.self), radix: 16)
    }
}
