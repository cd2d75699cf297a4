private import MartletCore

/// A share of requests in percent, written `1`, `0.05` or `5%`.
@frozen package struct SamplePercentage: Sendable, Hashable {
    /// In millionths: 10 000 are one percent.
    package let millionths: Int

    package static let all = SamplePercentage(millionths: 1_000_000)
    private static let maximumDecimals = 4

    package init(millionths: Int) { self.millionths = millionths }

    /// As it is written, with a percent sign.
    package var configurationText: String {
        let (whole, rest) = millionths.quotientAndRemainder(dividingBy: 10_000)
        guard rest > 0 else { return "\(whole)%" }
        var decimals = String(String(10_000 + rest).dropFirst())
        while decimals.last == "0" { decimals.removeLast() }
        return "\(whole).\(decimals)%"
    }
}

/// A share whose key does not say that it is in percent: `10` might be one request in ten or all of them.
struct SampleShare: Spelling {
    static let shape = ConfigurationGrammar.Shape.either([
        .integer(0...0), .pattern("^(0|[0-9]{1,3}([.][0-9]{1,4})?%)$"),
    ])
    static func text(of share: SamplePercentage) -> String? { share.configurationText }
    let content: SamplePercentage

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        content = try SamplePercentage(decoding: node)
        let text = try node.scalar(expecting: "a percentage").text
        guard text.utf8.last == 0x25 || content.millionths == 0 else {
            throw node.error(.configBadValue, "must have a percent sign: \(quoted(text + "%"))")
        }
    }
}

extension SamplePercentage: ConfigurationValue, Spelling {
    static var shape: ConfigurationGrammar.Shape { .either([.number, .pattern("^[0-9]{1,3}([.][0-9]{1,4})?%?$")]) }
    static func text(of share: SamplePercentage) -> String? { String(share.configurationText.dropLast()) }

    /// A number from 0 to 100 with at most four decimals; a percent sign may follow.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.scalar(expecting: "a percentage").text
        guard let millionths = Self.parse(text.utf8.last == 0x25 ? text.dropLast() : text[...]) else {
            throw node.error(
                .configBadValue, "\(quoted(text)) is not a percentage from 0 to 100, such as 5 or 0.05")
        }
        self.init(millionths: millionths)
    }

    fileprivate static func parse(_ text: Substring) -> Int? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let isNumber = parts.allSatisfy { part in
            !part.isEmpty && part.utf8.count <= maximumDecimals && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
        }
        guard isNumber, let whole = parts.first.flatMap({ Int($0) }), whole <= 100 else { return nil }
        var decimals = parts.count == 2 ? String(parts[1]) : ""
        while decimals.utf8.count < maximumDecimals { decimals += "0" }
        let millionths = whole * 10_000 + (Int(decimals) ?? 0)
        return millionths <= all.millionths ? millionths : nil
    }
}
