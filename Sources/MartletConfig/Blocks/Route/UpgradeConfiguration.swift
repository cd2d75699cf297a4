internal import MartletCore

/// `upgrade:` of a route.
@frozen package struct UpgradeConfiguration: KeyedBlock, Equatable {
    /// What happens to tunnels and long responses whose credential has expired or was revoked.
    @frozen package enum CloseOnExpiry: Sendable, Equatable {
        case never
        /// They end this long afterwards; zero is immediately.
        case after(Duration)
    }

    /// Lower-case names of protocols that a request may upgrade to.
    package var protocols = ["websocket"]
    package var closeOnExpiry = CloseOnExpiry.after(.zero)
    package var idle = Duration.seconds(300)
    package var maximumConnectionAge: Duration?

    package init() {}

    /// No upgrades.
    package static var none: UpgradeConfiguration {
        var configuration = UpgradeConfiguration()
        configuration.protocols = []
        return configuration
    }

    static let keys: [ConfigurationKey<Self>] = [
        .key("websocket", \.upgradesToWebSocket, "Whether requests may upgrade to WebSocket."),
        .row(
            .optional(
                "protocols", [UpgradeName].shape, default: "[]", "Other protocols that requests may upgrade to.")),
        .key(
            "close_on_expiry", \.closeOnExpiry, as: ExpiryRule.self,
            "Whether tunnels and long responses end when their credential expires; a duration is a grace period."),
        .key("idle", \.idle, in: Duration.positive, "How long a tunnel may be idle in both directions."),
        .key(
            "max_connection_age", \.maximumConnectionAge, in: Duration.positive,
            "The maximum age of a tunnel; unlimited if absent."),
        .check { $0.readProtocols(&$1) },
    ]

    private static let webSocket = "websocket"

    private var upgradesToWebSocket: Bool {
        get { protocols == [Self.webSocket] }
        set { protocols = newValue ? [Self.webSocket] : [] }
    }

    /// Adds those of `protocols`.
    private mutating func readProtocols(_ reader: inout ConfigurationReader) {
        let names = reader.optional("protocols", as: [Located<UpgradeName>].self) ?? []
        if let name = names.first(where: { $0.value.text == Self.webSocket }), !upgradesToWebSocket {
            reader.error(
                .configConflictingKeys, at: name.location, "protocols: 'websocket' conflicts with 'websocket: false'")
        }
        protocols += Self.unique(names, in: "protocols", &reader).filter { $0 != Self.webSocket }
    }

    /// Reads `upgrade:` in either form; errors are recorded.
    static func read(_ reader: inout ConfigurationReader) -> UpgradeConfiguration {
        guard let node = reader.node("upgrade"), node.entries == nil else {
            return reader.block("upgrade") ?? UpgradeConfiguration()
        }
        var value = UpgradeConfiguration()
        guard node.elements != nil else {
            reader.diagnostics.add(node.mismatch("upgrade: ", mustBe: "a block, or a list such as [websocket]"))
            return value
        }
        let names = reader.optional("upgrade", as: [Located<UpgradeName>].self) ?? []
        value.protocols = unique(names, in: "upgrade", &reader)
        return value
    }

    private static func unique(
        _ names: [Located<UpgradeName>], in key: String, _ reader: inout ConfigurationReader
    ) -> [String] {
        var seen: Set<String> = []
        for name in names where !seen.insert(name.value.text).inserted {
            reader.error(.configDuplicateName, at: name.location, "\(key): \(quoted(name.value.text)) is listed twice")
        }
        return names.map(\.value.text)
    }
}

/// A protocol name with or without a version (RFC 9110 §7.8), in lower case.
private struct UpgradeName: TextSpelling {
    static let shape = ConfigurationGrammar.Shape.pattern(
        "^[!#$%&'*+.^_`|~0-9A-Za-z-]+(/[!#$%&'*+.^_`|~0-9A-Za-z-]+)?$")

    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let written = try node.text()
        let parts = written.utf8.split(separator: 0x2F, omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), written.utf8.count <= 64,
            parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(HeaderName.isTokenByte) })
        else {
            throw node.error(.configBadValue, "\(quoted(written)) is not a protocol's name such as websocket")
        }
        text = written.lowercased()
        // The gateway terminates these protocols; a tunnel would carry requests that it has not authenticated.
        guard
            !["h2c", "h2", "http", "tls"].contains(
                String(decoding: Array(text.utf8.prefix { $0 != 0x2F }), as: UTF8.self))
        else {
            throw node.error(
                .configBadValue,
                "\(quoted(written)) is not an allowed upgrade: it would carry requests past the gateway")
        }
    }
}

/// `true`, `false` or a grace period.
private struct ExpiryRule: Spelling {
    static let shape = ConfigurationGrammar.Shape.either([.boolean, .duration])
    static func text(of rule: UpgradeConfiguration.CloseOnExpiry) -> String? { rule == .after(.zero) ? "true" : nil }
    let content: UpgradeConfiguration.CloseOnExpiry

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let scalar = try node.scalar(expecting: "true, false or a duration")
        switch scalar.text {
        case "true" where scalar.isPlain || scalar.hadVariable: content = .after(.zero)
        case "false" where scalar.isPlain || scalar.hadVariable: content = .never
        case let text where text.utf8.first.map { (0x30...0x39).contains($0) } == true:
            content = .after(try Duration(decoding: node))
        case let other: throw node.error(.configWrongType, "must be true, false or a duration, not \(quoted(other))")
        }
    }
}
