/// Percent-encoding (RFC 3986 §2.1).
enum URLEscaping {
    /// The text as a value of a query or a form: only letters, digits and `-._~/` stay.
    static func argument(_ text: String) -> String {
        escaped(text.utf8) { isUnreserved($0) || $0 == UInt8(ascii: "/") }
    }

    /// The bytes with every byte escaped that does not `stay`.
    static func escaped(_ bytes: some Sequence<UInt8>, stay: (UInt8) -> Bool) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            if stay(byte) {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The value of the escape at `index`, if there is one.
    static func value(_ bytes: [UInt8], at index: Int) -> UInt8? {
        guard index < bytes.count - 2, bytes[index] == UInt8(ascii: "%"), let high = hexValue(bytes[index + 1]),
            let low = hexValue(bytes[index + 2])
        else { return nil }
        return high << 4 | low
    }

    /// RFC 3986 §2.3.
    static func isUnreserved(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || "-._~".utf8.contains(byte)
    }

    static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    /// The bytes in lower-case hexadecimal digits.
    static func hexadecimal(_ bytes: [UInt8]) -> String {
        let lower = digits.map { $0 >= 0x41 ? $0 | 0x20 : $0 }
        return String(decoding: bytes.flatMap { [lower[Int($0 >> 4)], lower[Int($0 & 15)]] }, as: UTF8.self)
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x37
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }
}
