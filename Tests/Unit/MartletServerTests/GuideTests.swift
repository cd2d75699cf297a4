import AppleProvider
import Foundation
import MartletConfig
import MartletProvider
import Testing

@testable import MartletServer

/// The examples of the guides.
@Suite struct `The guide` {
    private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    /// The code blocks of a language, in order.
    private static func blocks(_ language: String) throws -> [String] {
        let path = here.appendingPathComponent("../../../Sources/MartletServer/Documentation.docc/WritingAProvider.md")
        return try String(contentsOf: path, encoding: .utf8).components(separatedBy: "```\(language)\n").dropFirst()
            .compactMap { $0.components(separatedBy: "\n```").first.map { $0 + "\n" } }
    }

    private static func blueprint(_ text: String) -> (Blueprint?, [String]) {
        var registry = ProviderRegistry()
        registry.register(PartnerProvider.self)
        let (blueprint, diagnostics) = Blueprint.read(
            text: text, name: "config.yaml", registry: registry, environment: { _ in nil })
        return (blueprint, diagnostics.sorted.map(\.description))
    }

    @Test func `to writing a provider shows code that is compiled and tested`() throws {
        let files = try ["GuideProvider.swift", "GuideProviderTests.swift"].map {
            try String(contentsOf: Self.here.appendingPathComponent($0), encoding: .utf8)
        }
        #expect(try Self.blocks("swift") == files)
    }

    @Test func `to writing a provider shows a configuration that is accepted without a warning`() throws {
        let (blueprint, diagnostics) = Self.blueprint(try #require(try Self.blocks("yaml").first))
        #expect(blueprint != nil && diagnostics.isEmpty, "\(diagnostics)")
    }

    @Test func `to writing a provider shows the error as it is reported`() throws {
        let text = try #require(try Self.blocks("yaml").first).replacing("keys_url: https:", with: "keys_url: http:")
        let line = try #require(try Self.blocks("").first { $0.contains("keys_url") })
        #expect(Self.blueprint(text).1 == [line.trimmingCharacters(in: .newlines)])
    }

    @Test func `of the configuration has every key of Apple's block with its default`() throws {
        let path = Self.here.appendingPathComponent(
            "../../../Sources/MartletServer/Documentation.docc/Configuration.md")
        let page = try String(contentsOf: path, encoding: .utf8)
        let section = try #require(page.components(separatedBy: "### Kind apple\n").last)
            .components(separatedBy: "\n### ")[0]
        for key in try #require(AppleConfiguration.grammar).keys {
            let row = section.split(separator: "\n").first { $0.hasPrefix("| `\(key.name)` |") }
            let fallback = key.fallback.map { "| `\($0)` |" } ?? (key.isRequired ? "| required |" : "| – |")
            #expect(row?.contains(fallback) == true, "\(key.name): \(row ?? "no row")")
        }
    }
}
