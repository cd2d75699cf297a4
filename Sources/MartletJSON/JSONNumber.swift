/// A number that preserves its literal, so that parsing loses nothing.
@frozen public struct JSONNumber: Sendable, Equatable, CustomStringConvertible {
    /// The literal, within the grammar of RFC 8259 §6.
    public let text: String

    /// - Parameter validated: a literal that the parser has checked.
    init(validated text: String) { self.text = text }

    public init(_ value: Int64) { text = String(value) }

    /// - Returns: `nil` for infinities and NaN, which JSON cannot represent.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        text = value.description
    }

    /// The value of an integer literal within 64 bits; `nil` for a fraction or exponent, such as `1.0` or `1e3`.
    public var int64: Int64? { Int64(text) }

    /// The nearest double; `nil` if that is infinite.
    public var double: Double? {
        guard let value = Double(text), value.isFinite else { return nil }
        return value
    }

    public var description: String { text }
}
