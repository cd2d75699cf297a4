/// `upgrade:` of a route: a block, or just the list of protocols.
struct RouteUpgrade: ConfigurationDecodable {
    var value = UpgradeConfiguration()

    static var grammar: ConfigurationGrammar? {
        .init([
            .optional("websocket", .boolean, default: "true", "Whether requests may upgrade to WebSocket."),
            .optional(
                "protocols", .list(.pattern(UpgradeName.pattern), nonEmpty: false), default: "[]",
                "Other protocols that requests may upgrade to."),
            .optional(
                "close_on_expiry", .either([.boolean, .duration]), default: "true",
                "Whether tunnels and long responses end when their credential expires; a duration is a grace period."),
            .optional("idle", .duration, default: "5m", "How long a tunnel may be idle in both directions."),
            .optional("max_connection_age", .duration, "The maximum age of a tunnel; unlimited if absent."),
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let websocket = reader.optional("websocket", default: true)
        let names = reader.optional("protocols", as: [Located<UpgradeName>].self) ?? []
        let others = Self.unique(names, in: "protocols", &reader).filter { $0 != "websocket" }
        value.protocols = (websocket ? ["websocket"] : []) + others
        if let name = names.first(where: { $0.value.text == "websocket" }), !websocket {
            reader.error(
                .configConflictingKeys, at: name.location, "protocols: 'websocket' conflicts with 'websocket: false'")
        }
        value.closeOnExpiry = reader.optional("close_on_expiry", as: ExpiryRule.self)?.value ?? value.closeOnExpiry
        value.idle = reader.optional("idle", default: value.idle, in: Duration.positive)
        value.maximumConnectionAge = reader.optional("max_connection_age", in: Duration.positive)
    }

    /// Reads `upgrade:` in either form; errors are recorded.
    static func read(_ reader: inout ConfigurationReader) -> UpgradeConfiguration {
        guard let node = reader.node("upgrade"), node.entries == nil else {
            return reader.block("upgrade", as: RouteUpgrade.self)?.value ?? UpgradeConfiguration()
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
private struct UpgradeName: ConfigurationValue {
    /// The pattern for the JSON Schema.
    static let pattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+(/[!#$%&'*+.^_`|~0-9A-Za-z-]+)?$"

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
private struct ExpiryRule: ConfigurationValue {
    let value: UpgradeConfiguration.CloseOnExpiry

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let scalar = try node.scalar(expecting: "true, false or a duration")
        switch scalar.text {
        case "true" where scalar.isPlain || scalar.hadVariable: value = .after(.zero)
        case "false" where scalar.isPlain || scalar.hadVariable: value = .never
        case let text where text.utf8.first.map { (0x30...0x39).contains($0) } == true:
            value = .after(try Duration(decoding: node))
        case let other: throw node.error(.configWrongType, "must be true, false or a duration, not \(quoted(other))")
        }
    }
}
