internal import MartletCore

/// Reads the parts of a signature's fields that their serialization has as they are: without escapes, superfluous
/// spaces and zeros.
struct PlainSignatureText {
    private static let maximumKeyBytes = 64
    private static let maximumDigits = 15

    private let bytes: [UInt8]
    private var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { index == bytes.count }

    /// Whether the next byte is this one, which is then skipped.
    mutating func skip(_ byte: Unicode.Scalar) -> Bool {
        guard index < bytes.count, bytes[index] == UInt8(ascii: byte) else { return false }
        index &+= 1
        return true
    }

    /// The text from here to the first byte of another class.
    private mutating func text(while isMember: (UInt8) -> Bool) -> String {
        let start = index
        while index < bytes.count, isMember(bytes[index]) { index &+= 1 }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    /// A key of letters alone, as all known ones are; labels may have digits and dashes after the first.
    mutating func key() -> String? {
        guard index < bytes.count, ASCII.isLower(bytes[index]) else { return nil }
        let key = text { ASCII.isLower($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "-") }
        return key.utf8.count <= Self.maximumKeyBytes ? key : nil
    }

    mutating func string() -> String? {
        guard skip("\"") else { return nil }
        let text = text { $0 &- 0x20 < 0x5F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        return skip("\"") ? text : nil
    }

    mutating func byteSequence() -> [UInt8]? {
        guard skip(":") else { return nil }
        let start = index
        while index < bytes.count, bytes[index] != UInt8(ascii: ":") { index &+= 1 }
        let end = index
        return skip(":") ? Base64.decode(bytes[start..<end], padding: .required) : nil
    }

    /// Reads the only value of a parameter: a text that is neither empty nor too long.
    mutating func read(_ text: inout String?) -> Bool {
        guard text == nil, let read = string(), (1...MessageSignature.maximumTextBytes).contains(read.utf8.count) else {
            return false
        }
        text = read
        return true
    }

    /// Reads the only value of a parameter: an integer without a sign.
    mutating func read(_ number: inout Int64?) -> Bool {
        let start = index
        var value: Int64 = 0
        while index < bytes.count, ASCII.isDigit(bytes[index]), index &- start < Self.maximumDigits {
            value = value * 10 + Int64(bytes[index] &- 0x30)
            index &+= 1
        }
        guard number == nil, index > start, bytes[start] != UInt8(ascii: "0") || index &- start == 1 else {
            return false
        }
        number = value
        return true
    }
}
