package import MartletCore

/// A whole number of percent, written `50%`.
@frozen package struct Percentage: Sendable, Hashable, Comparable {
    package let percent: Int

    package init(_ percent: Int) { self.percent = percent }

    /// Between 0 and 1.
    package var fraction: Double { Double(percent) / 100 }

    package static func < (left: Percentage, right: Percentage) -> Bool { left.percent < right.percent }
}

extension Percentage: ConfigurationQuantity, Spelling {
    /// Digits and a percent sign.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.scalar(expecting: "a percentage").text
        guard let (amount, unit) = splitQuantity(text), unit == "%" else {
            throw node.error(.configBadValue, "\(quoted(text)) is not a percentage such as 50%")
        }
        self.init(amount)
    }

    package static var rangeCode: ErrorCode { .configBadValue }
    package var configurationText: String { "\(percent)%" }

    static var shape: ConfigurationGrammar.Shape { .pattern("^[0-9]{1,3}%$") }
    static func text(of content: Percentage) -> String? { content.configurationText }
}
