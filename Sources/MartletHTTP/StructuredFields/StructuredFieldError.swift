package import MartletCore

/// Why a value is not a structured field of the expected kind (RFC 8941 §4.2).
package struct StructuredFieldError: CodedError, Equatable {
    package let code: ErrorCode
    /// Where parsing stopped, in bytes.
    package let offset: Int

    init(_ code: ErrorCode, at offset: Int) {
        self.code = code
        self.offset = offset
    }

    /// For operators; holds no part of the value.
    package var message: String { "the structured field is invalid at byte \(offset)" }
}

extension ErrorCode {
    /// The value exceeds the maximum length.
    package static let structuredFieldTooLarge: ErrorCode = "structured_field.too_large"
    /// There are too many members, items or parameters.
    package static let structuredFieldTooMany: ErrorCode = "structured_field.too_many"
    /// A key is malformed or too long.
    package static let structuredFieldBadKey: ErrorCode = "structured_field.bad_key"
    /// A key is given twice.
    package static let structuredFieldRepeatedKey: ErrorCode = "structured_field.repeated_key"
    /// An integer or decimal is malformed or has too many digits.
    package static let structuredFieldBadNumber: ErrorCode = "structured_field.bad_number"
    /// A string has a character or an escape that strings cannot have, or no end.
    package static let structuredFieldBadString: ErrorCode = "structured_field.bad_string"
    /// A byte sequence is not strict base64, or has no end.
    package static let structuredFieldBadBytes: ErrorCode = "structured_field.bad_bytes"
    /// A boolean is neither `?0` nor `?1`.
    package static let structuredFieldBadBoolean: ErrorCode = "structured_field.bad_boolean"
    /// An item is missing, or begins with a character that no item begins with.
    package static let structuredFieldBadItem: ErrorCode = "structured_field.bad_item"
    /// An inner list is malformed or has no end.
    package static let structuredFieldBadInnerList: ErrorCode = "structured_field.bad_inner_list"
    /// Members are not separated by one comma, or a comma is the last character.
    package static let structuredFieldBadSeparator: ErrorCode = "structured_field.bad_separator"
    /// Something follows an item.
    package static let structuredFieldTrailing: ErrorCode = "structured_field.trailing"
}
