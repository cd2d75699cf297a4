import MartletConfig
import MartletHTTP

/// Normalizes path patterns like request paths.
///
/// A pattern with content that no accepted request path can have is an error, because it would never match.
enum PathText {
    /// The syntax of a pattern.
    enum Form {
        /// `*` and `**` are wildcards.
        case glob
        /// No wildcards.
        case literal
    }

    /// - Returns: the pattern with percent-encodings of unreserved characters decoded, other triplets in upper case,
    ///   and spaces and non-ASCII percent-encoded, as in all requests.
    static func normalized(_ text: String, _ form: Form, _ options: PathOptions) throws(PatternError) -> [UInt8] {
        let bytes = Array(text.utf8)
        guard bytes.first == .slash else { throw PatternError("must begin with '/'") }
        var path: [UInt8] = []
        var decoded: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if byte == .percent {
                guard index + 2 < bytes.count, let high = bytes[index + 1].hexadecimalValue,
                    let low = bytes[index + 2].hexadecimalValue
                else { throw PatternError("has a '%' without two hexadecimal digits") }
                let value = high << 4 | low
                try check(encoded: value, options)
                append(value, to: &path, encoded: !value.isUnreserved)
                decoded.append(value)
                index += 3
            } else {
                try check(plain: byte, form)
                append(byte, to: &path, encoded: byte == .space || byte >= 0x80)
                decoded.append(byte)
                index += 1
            }
        }
        guard let text = String(validating: decoded, as: UTF8.self) else {
            throw PatternError("is not UTF-8 when decoded")
        }
        guard !CompatibilityForms.areAmbiguous(text.unicodeScalars) else {
            throw PatternError(
                "has a character that some servers read as '/', '\\', '.' or '%', which is rejected in requests")
        }
        try checkSegments(path)
        return path
    }

    private static func append(_ byte: UInt8, to path: inout [UInt8], encoded: Bool) {
        guard encoded else { return path.append(byte) }
        path += [.percent, (byte >> 4).hexadecimalDigit, byte.hexadecimalDigit]
    }

    private static func check(encoded byte: UInt8, _ options: PathOptions) throws(PatternError) {
        switch byte {
        case .slash where !options.keepsEncodedSlash:
            throw PatternError("has an encoded slash, which is rejected in requests unless paths.encoded_slash is keep")
        case .percent where !options.keepsEncodedPercent:
            throw PatternError("has an encoded '%', which is rejected in requests unless paths.encoded_percent is keep")
        case 0...0x1F, 0x7F, 0x5C:
            throw PatternError("has an encoded control character or backslash, which is rejected in requests")
        default: break
        }
    }

    private static func check(plain byte: UInt8, _ form: Form) throws(PatternError) {
        switch byte {
        case UInt8(ascii: "?"), UInt8(ascii: "#"): throw PatternError("has a '?' or '#': only the path is matched")
        case 0...0x1F, 0x7F: throw PatternError("has a control character")
        case 0x5C: throw PatternError("has a backslash, which is rejected in requests")
        case UInt8(ascii: "{"), UInt8(ascii: "}"):
            throw PatternError("has a '{' or '}': write '*' for a segment of any text")
        // RFC 3986 does not allow these in a path. Clients encode them, so a pattern must have the encoded form.
        case 0x22, 0x3C, 0x3E, 0x5B, 0x5D, 0x5E, 0x60, 0x7C:
            throw PatternError("has a character that must be percent-encoded: \(UnicodeScalar(byte))")
        case .star where form == .literal: throw PatternError("has a '*', which is not a wildcard here")
        default: break
        }
    }

    private static func checkSegments(_ path: [UInt8]) throws(PatternError) {
        let segments = path.dropFirst().split(separator: .slash, omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            if segment.isEmpty, index < segments.count - 1 { throw PatternError("has an empty segment") }
            let name = segment.prefix { $0 != UInt8(ascii: ";") }
            if name.elementsEqual([.dot]) || name.elementsEqual([.dot, .dot]) {
                throw PatternError("has a '.' or '..' segment, which is rejected in requests")
            }
        }
    }
}
