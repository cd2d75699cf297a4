package import MartletCore

/// A member of an object whose string values may be secrets.
@frozen package struct JSONMember: Sendable {
    /// The value of the member.
    @frozen package enum Value: Sendable {
        /// A string, unescaped.
        case text(Secret)
        /// Anything else.
        case other(JSONValue)
    }

    package let name: String
    package let value: Value
}
