internal import MartletCore

/// Whether a byte is an ASCII letter or digit.
func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "A")...UInt8(ascii: "Z"):
        true
    default: false
    }
}

extension Secret {
    /// The secret as text, for a call to WeChat; the copy is not wiped.
    var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}

/// Whether bytes are 1 to `maximum` letters, digits, `_` and `-`, the alphabet of codes, openids and unionids.
func isToken<Bytes: Collection<UInt8>>(_ bytes: Bytes, maximum: Int) -> Bool {
    (1...maximum).contains(bytes.count)
        && bytes.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") }
}

/// Decodes padded base64 (RFC 4648 §4) strictly; `nil` for anything else.
func decodeBase64(_ text: [UInt8]) -> [UInt8]? { Base64.decode(text[...], padding: .required) }
