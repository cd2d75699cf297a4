import Foundation
import MartletJSON
import Testing

@testable import MartletConfig

/// The keys of a provider for these tests.
private let greeting = ConfigurationGrammar([
    .required("greetings", .list(.text, nonEmpty: true), "The greetings."),
    .optional("timeout", .duration, default: "5s", "The timeout."),
]).withSecret("app_secret", required: true, "Shared with the greeter.")

/// Every block of the grammar with its dotted path.
private func blocks(_ grammar: ConfigurationGrammar, _ path: String) -> [(path: String, grammar: ConfigurationGrammar)]
{
    [(path, grammar)]
        + grammar.keys.flatMap { key in inner(key.shape, path.isEmpty ? key.name : "\(path).\(key.name)") }
}

private func inner(
    _ shape: ConfigurationGrammar.Shape, _ path: String
) -> [(path: String, grammar: ConfigurationGrammar)] {
    switch shape {
    case .block(let grammar): blocks(grammar, path)
    case .list(let element, _): inner(element, "\(path)[]")
    case .map(let element): inner(element, "\(path).*")
    case .either(let shapes): shapes.flatMap { inner($0, path) }
    case .authorize: ConditionConfiguration.grammar.map { [(path, $0)] } ?? []
    default: []
    }
}

@Suite struct `The schema` {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
        .standardized

    private func schema() -> JSONValue {
        ConfigurationSchema.document(providers: [("apple", nil), ("greeting", greeting)])
    }

    @Test func `is JSON that closes every block`() throws {
        let bytes = JSON.write(schema())
        let parsed = try JSON.parse(bytes, limits: JSONLimits(maximumDepth: 40, maximumBytes: 1 << 20))
        let server = try #require(parsed.object?["properties"]?.object?["server"]?.object)
        #expect(server["additionalProperties"]?.bool == false)
        let limits = try #require(server["properties"]?.object?["limits"]?.object)
        #expect(limits["additionalProperties"]?.bool == false)
        #expect(limits["properties"]?.object?["connections"]?.object?["default"]?.int64 == 10_000)
        #expect(parsed.object?["required"]?.array?.compactMap(\.string) == ["version", "routes"])
        if let path = ProcessInfo.processInfo.environment["MARTLET_WRITE_SCHEMA"] {
            try Data(bytes).write(to: URL(filePath: path))
        }
    }

    @Test func `describes providers by kind`() throws {
        let provider = try #require(schema().object?["$defs"]?.object?["provider"]?.object)
        #expect(provider["properties"]?.object?["kind"]?.object?["enum"] == ["apple", "greeting"])
        let kinds = try #require(provider["allOf"]?.array)
        #expect(kinds.count == 1, "a kind without a grammar has any keys")
        let condition = kinds[0].object?["if"]?.object?["properties"]?.object?["kind"]?.object
        #expect(condition?["const"]?.string == "greeting")
        let properties = try #require(kinds[0].object?["then"]?.object?["properties"]?.object)
        #expect(
            properties.members.map(\.name) == [
                "greetings", "timeout", "app_secret", "app_secret_file", "kind", "bulkhead", "label", "icon_file",
                "ca_file", "http_proxy", "no_proxy",
            ])
        #expect(properties["kind"]?.object?["const"]?.string == "greeting")
    }

    @Test func `has only keys that the guide documents`() throws {
        let guide = try String(
            contentsOf: Self.root.appending(path: "Sources/MartletServer/Documentation.docc/Configuration.md"),
            encoding: .utf8)
        let lines = guide.split(separator: "\n").map(String.init)
        for (path, grammar) in blocks(GatewayConfiguration.grammar, "") {
            let heading = path.isEmpty ? "## The file" : "### `\(path)`"
            guard let start = lines.firstIndex(of: heading) else {
                Issue.record("Configuration.md has no heading \(heading)")
                continue
            }
            let section = lines[(start + 1)...].prefix { !$0.hasPrefix("#") }
            for key in grammar.keys {
                let row = section.first { $0.hasPrefix("| `\(key.name)` |") }
                #expect(row != nil, "Configuration.md: no row for \(key.name) under \(heading)")
                guard let row, let fallback = key.fallback else { continue }
                #expect(
                    row.contains("| `\(fallback)` |"),
                    "Configuration.md: \(path).\(key.name) has the default \(fallback)")
            }
        }
    }

    @Test func `has only codes that the guide lists`() throws {
        let guide = try String(
            contentsOf: Self.root.appending(path: "Sources/MartletServer/Documentation.docc/Configuration.md"),
            encoding: .utf8)
        let source = try String(
            contentsOf: Self.root.appending(path: "Sources/MartletConfig/ErrorCode+Config.swift"), encoding: .utf8)
        let codes = source.matches(of: /"(config\.[a-z0-9_]+)"/).map { String($0.1) }
        #expect(codes.count > 20)
        for code in codes { #expect(guide.contains("| `\(code)` |"), "Configuration.md does not list \(code)") }
    }

    @Test func `has the defaults that the reader uses`() throws {
        let plain = try #require(load(minimalSample).configuration)
        var sections: [String] = []
        for key in GatewayConfiguration.grammar.keys {
            guard case .block(let grammar) = key.shape, !Self.hasRequiredKeys(grammar) else { continue }
            sections.append("\(key.name): \(Self.defaults(grammar))")
        }
        let (spelled, diagnostics) = load(minimalSample + "\n" + sections.joined(separator: "\n"))
        #expect(diagnostics.description == "")
        let configuration = try #require(spelled)
        #expect(configuration.server.limits == plain.server.limits)
        #expect(configuration.server.paths == plain.server.paths)
        #expect(configuration.server.timeouts == plain.server.timeouts)
        #expect(configuration.server.http2 == plain.server.http2)
        #expect(configuration.server.workers == plain.server.workers)
        #expect(configuration.log == plain.log && configuration.jwks == plain.jwks)
        #expect(configuration.store.keyPrefix == plain.store.keyPrefix)
        #expect(configuration.store.onError == plain.store.onError)
        #expect(configuration.sessions == plain.sessions && configuration.sessions == SessionsConfiguration())
        #expect(configuration.wellKnown == plain.wellKnown && configuration.wellKnown == WellKnownConfiguration())
    }

    /// Whether a block has required keys without a default.
    private static func hasRequiredKeys(_ grammar: ConfigurationGrammar) -> Bool {
        !grammar.oneOf.isEmpty || grammar.keys.contains(where: \.isRequired)
    }

    /// A block with every key at its documented default.
    private static func defaults(_ grammar: ConfigurationGrammar) -> String {
        let keys = grammar.keys.compactMap { key -> String? in
            if case .block(let inner) = key.shape {
                guard !hasRequiredKeys(inner) else { return nil }
                return "\(key.name): \(defaults(inner))"
            }
            guard let fallback = key.fallback else { return nil }
            let isPlain = fallback.hasPrefix("[") || fallback.hasPrefix("{") || !fallback.contains(":")
            return "\(key.name): \(isPlain ? fallback : "\"\(fallback)\"")"
        }
        return "{ \(keys.joined(separator: ", ")) }"
    }

    @Test func `has exactly the keys that are read`() throws {
        func check<Block: ConfigurationDecodable>(_ type: Block.Type) throws {
            let empty = ConfigurationNode(.mapping([]), at: SourceLocation(file: "t", line: 1, column: 1))
            let grammar = try #require(Block.grammar)
            var reader = try ConfigurationReader(empty, title: "block", grammar: grammar)
            _ = try? Block(from: &reader)
            #expect(Set(reader.requestedKeys) == Set(grammar.keyNames), "\(Block.self)")
        }
        try check(ServerConfiguration.self)
        try check(ListenerConfiguration.self)
        try check(ListenerTLS.self)
        try check(CertificateFiles.self)
        try check(HTTP2Configuration.self)
        try check(UpstreamTLS.self)
        try check(Limits.self)
        try check(PathOptions.self)
        try check(ServerTimeouts.self)
        try check(AdminConfiguration.self)
        try check(LogConfiguration.self)
        try check(StoreConfiguration.self)
        try check(StoreSealConfiguration.self)
        try check(JWKSConfiguration.self)
        try check(AccountsConfiguration.self)
        try check(SessionsConfiguration.self)
        try check(AssertionConfiguration.self)
        try check(WellKnownConfiguration.self)
        try check(UpstreamConfiguration.self)
        try check(UpstreamTimeouts.self)
        try check(RouteConfiguration.self)
        try check(RouteMatch.self)
        try check(RouteAuthentication.self)
        try check(RouteHeaders.self)
        try check(HeaderConfiguration.Block.self)
        try check(RouteRewrite.self)
        try check(RouteLimits.self)
        try check(UpgradeConfiguration.self)
    }

    @Test func `accepts the shipped configuration`() throws {
        let text = try Data(contentsOf: Self.root.appending(path: "config.yaml"))
        let (configuration, diagnostics) = GatewayConfiguration.decode(
            text: Array(text), file: "config.yaml", environment: { _ in nil }, knownKinds: ["apple"])
        #expect(diagnostics.description == "")
        #expect(try #require(configuration).routes.map(\.name.value) == ["public", "api"])
    }
}
