import BundledProviders
import Foundation
import MartletConfig
import MartletCore
import MartletProvider
import MartletProxy
import Testing

@testable import MartletServer

/// The examples of the README.
@Suite struct `Readme` {
    private static let text = Result {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..")
        return try String(contentsOf: root.appendingPathComponent("README.md"), encoding: .utf8)
    }

    /// The code blocks of a language, in order.
    private static func blocks(_ language: String) throws -> [String] {
        try text.get().components(separatedBy: "```\(language)\n").dropFirst()
            .compactMap { $0.components(separatedBy: "\n```").first.map { $0 + "\n" } }
    }

    private static let registry: ProviderRegistry = {
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        registry.register(DoorProvider.self)
        return registry
    }()

    private static func blueprint(_ text: String) -> (Blueprint?, Diagnostics) {
        Blueprint.read(text: text, name: "README.md", registry: registry, environment: { _ in nil })
    }

    @Test func `its configuration is accepted without a warning`() throws {
        let yaml = try #require(try Self.blocks("yaml").first)
        let (blueprint, diagnostics) = Self.blueprint(yaml)
        #expect(blueprint != nil && diagnostics.sorted.isEmpty, "\(diagnostics.sorted)")
    }

    @Test func `its provider is this one`() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "ReadmeProvider.swift")
        #expect(try Self.blocks("swift").first == String(contentsOf: file, encoding: .utf8))
    }

    @Test func `its provider accepts the right word only`() async throws {
        let text = """
            version: 1
            providers: { door: { kind: door, word: sesame } }
            upstreams: { echo: { endpoints: ["builtin:echo"] } }
            routes: [{ name: all, match: { path: /** }, auth: { providers: [door] }, upstream: echo }]
            """
        let (blueprint, diagnostics) = Self.blueprint(text)
        let made = try #require(blueprint, "\(diagnostics.sorted)")
        let services = try Services(sink: LogSink(.text, descriptor: 2), level: .error)
        defer { services.shutdown() }
        let graph = try Graph.build(
            made, services, previous: nil, keys: IssuerKeysRegistry(),
            invalidator: CacheInvalidator(logger: services.logger))
        func explain(_ token: String) async -> RequestExplanation {
            await RequestExplainer(graph.snapshot, clock: .system)
                .explain(ExplainedRequest(method: "GET", target: "/a", host: "a.test", token: Secret(token)))
        }
        let good = await explain("door_sesame")
        #expect(good.principal?.subject == "door:guest" && good.headers.contains("X-Auth-Subject: door:guest"))
        let bad = await explain("door_open")
        guard case .refused(let response) = bad.outcome else { throw TestFailure() }
        #expect(response.status == 401 && response.reason == "door.wrong_word" && bad.headers.isEmpty)
    }

    private struct TestFailure: Error {}
}
