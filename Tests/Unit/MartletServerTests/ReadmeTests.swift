import BundledProviders
import Foundation
import MartletConfig
import MartletProvider
import Testing

@testable import MartletServer

/// The examples of the README.
@Suite struct `Readme` {
    /// The text of a file of the repository.
    private static func text(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..")
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// The first code block of a language.
    private static func block(_ language: String) throws -> String? {
        try text("README.md").components(separatedBy: "```\(language)\n").dropFirst().first?
            .components(separatedBy: "```").first
    }

    @Test func `its configuration is accepted without a warning`() throws {
        var registry = ProviderRegistry()
        BundledProviders.register(in: &registry)
        let yaml = try #require(try Self.block("yaml"))
        let (blueprint, diagnostics) = Blueprint.read(
            text: yaml, name: "README.md", registry: registry, environment: { _ in nil })
        #expect(blueprint != nil && diagnostics.sorted.isEmpty, "\(diagnostics.sorted)")
    }

    @Test func `its provider is part of an example that is compiled and tested`() throws {
        let example = try Self.text("Examples/Plugins/KeyTable/KeyTableProvider.swift").split(separator: "\n")
        let lines = example.map { $0.drop { $0 == " " } }
        let shown = try #require(try Self.block("swift")).split(separator: "\n").map { $0.drop { $0 == " " } }
        #expect(shown.count > 5 && shown.filter { !lines.contains($0) }.isEmpty)
    }
}
