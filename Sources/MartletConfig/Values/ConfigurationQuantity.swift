public import MartletCore

/// A comparable value that a key can bound.
public protocol ConfigurationQuantity: ConfigurationValue, Comparable {
    /// The error code for a value out of bounds.
    static var rangeCode: ErrorCode { get }
    /// The value as written in `config.yaml`.
    var configurationText: String { get }
}

extension ConfigurationQuantity {
    /// Reads a value and checks its bounds.
    init(decoding node: ConfigurationNode, in range: ClosedRange<Self>) throws(ConfigurationError) {
        let value = try Self(decoding: node)
        guard range.contains(value) else {
            throw node.error(
                Self.rangeCode,
                "must be between \(range.lowerBound.configurationText) and \(range.upperBound.configurationText), "
                    + "not \(value.configurationText)")
        }
        self = value
    }
}

/// Digits followed by a unit.
///
/// - Returns: `nil` for anything else, and for numbers of more than 18 digits.
func splitQuantity(_ text: String) -> (amount: Int, unit: String)? {
    let digits = text.utf8.prefix { (0x30...0x39).contains($0) }
    guard (1...18).contains(digits.count), let amount = Int(String(decoding: digits, as: UTF8.self)) else { return nil }
    return (amount, String(decoding: text.utf8.dropFirst(digits.count), as: UTF8.self))
}
