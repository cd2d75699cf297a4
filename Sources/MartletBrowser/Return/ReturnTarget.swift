/// Where a browser is sent after signing in or out: a path of this gateway, or a page of an allowed origin.
///
/// Only ``ReturnRule`` makes one. The text has no other bytes than RFC 3986 allows in a URL, so it can be written to
/// `Location` as it is.
package struct ReturnTarget: Sendable, Hashable, CustomStringConvertible {
    /// The value of `Location`.
    package let text: String

    init(_ text: String) { self.text = text }

    /// The path `/`, which everything that is not allowed becomes.
    package static let home = ReturnTarget("/")

    /// Whether it is a path of this gateway.
    package var isLocal: Bool { text.utf8.first == UInt8(ascii: "/") }

    package var description: String { text }

    /// The text as the value of an argument of a query.
    package var argument: String { URLEscaping.argument(text) }
}
