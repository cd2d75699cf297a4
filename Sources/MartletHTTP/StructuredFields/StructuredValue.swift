internal import MartletCore

/// A bare item of a structured field (RFC 8941 §3.3).
package enum StructuredValue: Sendable, Equatable {
    /// At most 15 digits.
    case integer(Int64)
    /// A decimal with up to three digits after the point, multiplied by 1000.
    case decimal(thousandths: Int64)
    /// Printable ASCII.
    case string(String)
    /// Such as `gzip` or `text/html`.
    case token(String)
    case bytes([UInt8])
    case boolean(Bool)

    /// The number, if this is an integer.
    package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

    /// The text, if this is a string; a token is none.
    package var string: String? { if case .string(let text) = self { text } else { nil } }

    /// The bytes, if this is a byte sequence.
    package var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }

    /// Appends the one serialization of the value (RFC 8941 §4.1.3 to §4.1.9).
    package func append(to output: inout [UInt8]) {
        switch self {
        case .integer(let value): output += String(value).utf8
        case .decimal(let thousandths): Self.append(thousandths: thousandths, to: &output)
        case .string(let text):
            output.append(UInt8(ascii: "\""))
            for byte in text.utf8 {
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { output.append(UInt8(ascii: "\\")) }
                output.append(byte)
            }
            output.append(UInt8(ascii: "\""))
        case .token(let text): output += text.utf8
        case .bytes(let bytes): output += ":\(Base64.encode(bytes, padding: .required)):".utf8
        case .boolean(let value): output += (value ? "?1" : "?0").utf8
        }
    }

    private static func append(thousandths: Int64, to output: inout [UInt8]) {
        let (whole, fraction) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1000)
        var digits = Array(String(fraction + 1000).utf8.dropFirst())
        while digits.count > 1, digits.last == UInt8(ascii: "0") { digits.removeLast() }
        output += "\(thousandths < 0 ? "-" : "")\(whole).".utf8 + digits
    }
}
