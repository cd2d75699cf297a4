import MartletConfig
import MartletCore
import MartletJOSE
import MartletProvider
import Testing

@Suite struct ProviderRegistryTests {
    static let here = SourceLocation(file: "config.yaml", line: 3, column: 5)

    static func block(_ entries: [(String, String)]) -> ConfigurationNode {
        ConfigurationNode(
            .mapping(
                entries.map {
                    .init(
                        key: Located($0.0, at: here),
                        value: ConfigurationNode(.scalar(.init($0.1, isPlain: false)), at: here))
                }),
            at: here)
    }

    static let context = ProviderContext(
        name: "hall", services: .detached(clock: .system, hasUsers: false), logger: .silent, storeKeyPrefix: "test:",
        makeIssuerKeys: { _, _, _ in preconditionFailure("a greeting has no keys") }, forget: {})

    static var registry: ProviderRegistry {
        var registry = ProviderRegistry()
        registry.register(Greeting.self)
        return registry
    }

    @Test func `builds a provider from its block and detects its capabilities`() throws {
        let factory = try #require(Self.registry.factory(for: "greeting"))
        var diagnostics = Diagnostics()
        let prepared = try #require(factory.prepare(Self.block([("word", "hello")]), name: "hall", into: &diagnostics))
        let handle = try prepared.build(Self.context)
        #expect(diagnostics.isEmpty)
        #expect(handle.name == "hall")
        #expect(handle.kind == "greeting")
        #expect(handle.accepts == [.bearerPrefix("hello_")])
        #expect(handle.authenticating != nil)
        #expect(handle.local == nil)
        #expect(handle.quick == nil)
        #expect(handle.throttling == nil)
        #expect(handle.running == nil)
        #expect(handle.explaining == nil)
        #expect(handle.reporting == nil)
    }

    @Test(arguments: [
        ([("wort", "hello")], ErrorCode.configUnknownKey), ([], .configMissingKey), ([("word", "")], .configBadValue),
        ([("word", "hello"), ("tone", "x")], .configUnknownKey), ([("word", "HELLO")], .configInsecure),
    ])
    func `reports errors of a block`(entries: [(String, String)], code: ErrorCode) throws {
        let factory = try #require(Self.registry.factory(for: "greeting"))
        var diagnostics = Diagnostics()
        #expect(factory.prepare(Self.block(entries), name: "hall", into: &diagnostics) == nil)
        #expect(diagnostics.errors.map(\.code) == [code])
    }

    @Test func `counts on after a reload, also with other settings`() throws {
        let factory = try #require(Self.registry.factory(for: "greeting"))
        var diagnostics = Diagnostics()
        func prepared(_ word: String) throws -> PreparedProvider {
            try #require(factory.prepare(Self.block([("word", word)]), name: "hall", into: &diagnostics))
        }
        let first = try prepared("hello").build(Self.context)
        first.logins.count(.milliseconds(1), failed: true)
        first.verifications.count(.milliseconds(1), failed: false)
        let second = try prepared("goodbye").build(Self.context, replacing: first)
        #expect(second.logins.counts == first.logins.counts && second.logins.counts.failures == 1)
        #expect(second.verifications.counts.calls == 1)
        #expect(try prepared("hello").build(Self.context).logins.counts.calls == 0)
    }

    @Test func `lists its kinds`() {
        #expect(Self.registry.kinds == ["greeting"])
        #expect(Self.registry.factory(for: "parting") == nil)
    }

    @Test func `keeps the first plugin of a kind, and notes the second`() {
        var registry = Self.registry
        #expect(registry.conflicts.isEmpty)
        registry.register(Greeting.self)
        #expect(registry.kinds == ["greeting"] && registry.conflicts == ["greeting"])
        #expect(registry.add(Self.registry) == ["greeting"])
    }
}

/// The smallest provider that authenticates.
private struct Greeting: Authenticating {
    struct Configuration: ConfigurationDecodable {
        let word: String

        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            word = try reader.required("word")
            if word.isEmpty { throw ConfigurationError(.configBadValue, at: reader.location, "must not be empty") }
        }
    }

    static let kind: ProviderKind = "greeting"

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {
        if configuration.word == "HELLO" {
            diagnostics.error(.configInsecure, at: ProviderRegistryTests.here, "too loud")
        }
    }

    let accepts: [CredentialSource]

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        accepts = [.bearerPrefix("\(configuration.word)_")]
    }

    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        throw .rejected("greeting.unknown")
    }
}
