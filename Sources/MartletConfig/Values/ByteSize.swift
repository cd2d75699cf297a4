public import MartletCore

/// A number of bytes, written `512B`, `16KiB`, `10MiB` or `1GiB`.
@frozen public struct ByteSize: Hashable, Sendable {
    public let bytes: Int

    public init(bytes: Int) { self.bytes = bytes }

    /// `amount` times 1024 bytes.
    public static func kibibytes(_ amount: Int) -> ByteSize { ByteSize(bytes: amount &* 1024) }
    /// `amount` times 1024 KiB.
    public static func mebibytes(_ amount: Int) -> ByteSize { ByteSize(bytes: amount &* 1_048_576) }
}

extension ByteSize: ConfigurationQuantity {
    /// The largest accepted size, 1 PiB.
    static let largestConfigured = ByteSize(bytes: 1 << 50)

    private static let units: [(name: String, bytes: Int)] = [
        ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
    ]

    /// A whole number followed by one unit.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.scalar(expecting: "a size").text
        guard let (amount, name) = splitQuantity(text), let unit = Self.units.first(where: { $0.name == name }) else {
            throw node.error(.configBadSize, "\(quoted(text)) is not a size such as 512B, 16KiB, 10MiB or 1GiB")
        }
        let (bytes, overflow) = amount.multipliedReportingOverflow(by: unit.bytes)
        guard !overflow, bytes <= Self.largestConfigured.bytes else {
            throw node.error(
                .configBadSize, "\(quoted(text)) is larger than \(Self.largestConfigured.configurationText)")
        }
        self.bytes = bytes
    }

    public static func < (left: ByteSize, right: ByteSize) -> Bool { left.bytes < right.bytes }

    public static var rangeCode: ErrorCode { .configBadSize }

    /// The shortest spelling: `1MiB`, not `1024KiB`.
    public var configurationText: String {
        let unit = Self.units.first { bytes != 0 && bytes % $0.bytes == 0 }
        return unit.map { "\(bytes / $0.bytes)\($0.name)" } ?? "0B"
    }
}
