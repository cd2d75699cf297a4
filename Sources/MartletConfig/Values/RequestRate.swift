/// A number of calls per second, minute or hour, written `5/s`, `300/m` or `10000/h`.
@frozen public struct RequestRate: Hashable, Sendable {
    static let maximumCount = 1_000_000

    /// Calls in one period; at least 1.
    public let count: Int
    /// The period in seconds.
    public let seconds: Int

    public init(count: Int, perSeconds seconds: Int = 1) {
        self.count = max(count, 1)
        self.seconds = max(seconds, 1)
    }

    /// The rate as it is written in a file.
    package var text: String {
        let unit = Self.units.first { $0.seconds == seconds }?.name ?? "\(seconds)s"
        return "\(count)/\(unit)"
    }

    /// The time between two calls at this rate.
    public var interval: Duration { .nanoseconds(Int64(seconds) * 1_000_000_000 / Int64(count)) }
}

extension RequestRate: ConfigurationValue, Spelling {
    private static let units: [(name: String, seconds: Int)] = [("s", 1), ("m", 60), ("h", 3600)]

    /// A whole number, a slash and a unit.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.scalar(expecting: "a rate").text
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let unit = Self.units.first(where: { $0.name == parts[1] }),
            parts[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(parts[0]),
            (1...Self.maximumCount).contains(count)
        else {
            throw node.error(.configBadValue, "\(quoted(text)) is not a rate such as 5/s, 300/m or 10000/h")
        }
        self.init(count: count, perSeconds: unit.seconds)
    }

    /// The shape of a rate in the schema.
    public static var shape: ConfigurationGrammar.Shape { .pattern("^[1-9][0-9]{0,6}/[smh]$") }
}
