public import MartletCore

/// Why a document is not the JSON that was asked for.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    public let code: ErrorCode
    /// The byte at which it was noticed, from 0.
    public let offset: Int
    /// The member of the document that is there twice, or has a member twice; known where members are read one by one.
    package let member: String?

    public init(_ code: ErrorCode, at offset: Int) { self.init(code, at: offset, member: nil) }

    package init(_ code: ErrorCode, at offset: Int, member: String?) {
        self.code = code
        self.offset = offset
        self.member = member
    }

    public var description: String { "byte \(offset) [\(code)]" }
}

extension ErrorCode {
    /// More bytes than the limit allows.
    public static let jsonTooLarge: ErrorCode = "json.too_large"
    /// More containers within each other than the limit allows.
    public static let jsonTooDeep: ErrorCode = "json.too_deep"
    /// The document ends within a value.
    public static let jsonUnexpectedEnd: ErrorCode = "json.unexpected_end"
    /// A byte that cannot stand there.
    public static let jsonUnexpectedByte: ErrorCode = "json.unexpected_byte"
    /// Something other than white space behind the value.
    public static let jsonTrailingBytes: ErrorCode = "json.trailing_bytes"
    /// A byte order mark before the value (RFC 8259 §8.1).
    public static let jsonByteOrderMark: ErrorCode = "json.byte_order_mark"
    /// A number outside the grammar of RFC 8259 §6.
    public static let jsonBadNumber: ErrorCode = "json.bad_number"
    /// An unknown or unfinished escape.
    public static let jsonBadEscape: ErrorCode = "json.bad_escape"
    /// Half of a surrogate pair.
    public static let jsonLoneSurrogate: ErrorCode = "json.lone_surrogate"
    /// A raw control character within a string.
    public static let jsonControlCharacter: ErrorCode = "json.control_character"
    /// A string that is not UTF-8.
    public static let jsonInvalidUTF8: ErrorCode = "json.invalid_utf8"
    /// Two members with the same name once escapes are resolved.
    public static let jsonDuplicateName: ErrorCode = "json.duplicate_name"
}
