package import MartletCore

/// One member of an object whose texts may be secrets.
package struct JSONMember: Sendable {
    /// What it holds.
    package enum Value: Sendable {
        /// A string, unescaped.
        case text(Secret)
        /// Anything else.
        case other(JSONValue)
    }

    package let name: String
    package let value: Value
}
