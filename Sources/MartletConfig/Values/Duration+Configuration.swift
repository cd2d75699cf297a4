public import MartletCore

extension Duration: ConfigurationQuantity {
    /// The longest accepted duration: about ten years.
    static let longestConfigured = Duration.seconds(3_650 * 86_400)

    private static let units: [(name: String, milliseconds: Int)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1),
    ]

    /// `250ms`, `10s`, `15m`, `1h`, `30d`: a whole number followed by one unit.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.scalar(expecting: "a duration").text
        guard let parsed = Self.milliseconds(text) else {
            let isNumber = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
            throw node.error(
                .configBadDuration,
                "\(quoted(text)) is not a duration such as 250ms, 10s, 15m, 1h or 30d"
                    + (isNumber ? " (did you mean \(quoted(text + "s"))?)" : ""))
        }
        guard parsed <= Int(Self.longestConfigured.wholeMilliseconds) else {
            throw node.error(.configBadDuration, "\(quoted(text)) is longer than 3650d")
        }
        self = .milliseconds(parsed)
    }

    /// A duration in the same form outside of a configuration, such as that of an option; `nil` for anything else.
    package init?(configurationText text: String) {
        guard let parsed = Self.milliseconds(text), parsed <= Int(Self.longestConfigured.wholeMilliseconds) else {
            return nil
        }
        self = .milliseconds(parsed)
    }

    /// The milliseconds of a text, saturating; `nil` for one in another form.
    private static func milliseconds(_ text: String) -> Int? {
        guard let (amount, name) = splitQuantity(text), let unit = units.first(where: { $0.name == name }) else {
            return nil
        }
        let (milliseconds, overflow) = amount.multipliedReportingOverflow(by: unit.milliseconds)
        return overflow ? .max : milliseconds
    }

    public static var rangeCode: ErrorCode { .configBadDuration }

    /// The shortest spelling: `1h`, not `60m`.
    public var configurationText: String {
        let milliseconds = Int(wholeMilliseconds)
        let unit = Self.units.first { milliseconds != 0 && milliseconds % $0.milliseconds == 0 }
        return unit.map { "\(milliseconds / $0.milliseconds)\($0.name)" } ?? "0s"
    }
}

extension Duration {
    /// The range of timeouts, which must not be zero.
    static let positive = Duration.milliseconds(1)...longestConfigured
}
