/// A number as it was written; nothing is lost by reading it.
public struct JSONNumber: Sendable, Equatable, CustomStringConvertible {
    /// The literal, within the grammar of RFC 8259 §6.
    public let text: String

    /// - Parameter grammatical: a literal that the parser has checked.
    init(grammatical text: String) { self.text = text }

    public init(_ value: Int64) { text = String(value) }

    /// - Returns: `nil` for infinities and NaN, which JSON cannot say.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        text = value.description
    }

    /// The value of an integer literal: no fraction, no exponent, within 64 bits.
    ///
    /// `1.0` and `1e3` are not integers.
    public var int64: Int64? { Int64(text) }

    /// The nearest double, unless that would be infinite.
    public var double: Double? {
        guard let value = Double(text), value.isFinite else { return nil }
        return value
    }

    public var description: String { text }
}
