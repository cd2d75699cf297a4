public import MartletCore

/// Why a document was rejected.
public struct JSONError: CodedError, Equatable {
    public let code: ErrorCode
    /// The offset of the error in bytes, from 0.
    public let offset: Int
    /// The top-level member that is duplicated, or whose value is invalid; set by ``JSON/members(of:limits:)`` only.
    package let member: String?

    public init(_ code: ErrorCode, at offset: Int) { self.init(code, at: offset, member: nil) }

    package init(_ code: ErrorCode, at offset: Int, member: String?) {
        self.code = code
        self.offset = offset
        self.member = member
    }

    public var message: String { "byte \(offset)" }
}

extension ErrorCode {
    /// More bytes than the limit allows.
    public static let jsonTooLarge: ErrorCode = "json.too_large"
    /// Deeper nesting than the limit allows.
    public static let jsonTooDeep: ErrorCode = "json.too_deep"
    /// More members or elements than the limit.
    public static let jsonTooManyValues: ErrorCode = "json.too_many_values"
    /// The document ends within a value.
    public static let jsonUnexpectedEnd: ErrorCode = "json.unexpected_end"
    /// A byte that the grammar does not allow there.
    public static let jsonUnexpectedByte: ErrorCode = "json.unexpected_byte"
    /// Bytes other than white space after the value.
    public static let jsonTrailingBytes: ErrorCode = "json.trailing_bytes"
    /// A byte order mark before the value (RFC 8259 §8.1).
    public static let jsonByteOrderMark: ErrorCode = "json.byte_order_mark"
    /// A number outside the grammar of RFC 8259 §6.
    public static let jsonBadNumber: ErrorCode = "json.bad_number"
    /// An unknown or incomplete escape.
    public static let jsonBadEscape: ErrorCode = "json.bad_escape"
    /// Half of a surrogate pair.
    public static let jsonLoneSurrogate: ErrorCode = "json.lone_surrogate"
    /// A raw control character within a string.
    public static let jsonControlCharacter: ErrorCode = "json.control_character"
    /// A string that is not valid UTF-8.
    public static let jsonInvalidUTF8: ErrorCode = "json.invalid_utf8"
    /// Two members of an object with the same name after unescaping.
    public static let jsonDuplicateName: ErrorCode = "json.duplicate_name"
}
