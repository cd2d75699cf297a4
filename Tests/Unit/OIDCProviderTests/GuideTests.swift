import Foundation
import MartletConfig
import Testing

@testable import OIDCProvider

@Suite struct GuideTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../..")

    private static func page(_ name: String) throws -> String {
        try String(
            contentsOf: root.appendingPathComponent("Sources/MartletServer/Documentation.docc/\(name)"), encoding: .utf8
        )
    }

    @Test func `of the configuration has every key with its default`() throws {
        let section = try #require(Self.page("Configuration.md").components(separatedBy: "### Kind oidc\n").last)
            .components(separatedBy: "\n### ")[0]
        let parts: [(String, ConfigurationGrammar?)] = [
            ("", OIDCConfiguration.grammar), ("`accepts[]`", AcceptBlock.grammar),
            ("`introspection`", IntrospectionBlock.grammar), ("`web` of OpenID Connect", OIDCWebBlock.grammar),
            ("`login`", LoginBlock.grammar),
        ]
        for (heading, grammar) in parts {
            let text = heading.isEmpty ? section : section.components(separatedBy: "#### \(heading)\n")[1]
            let table = text.components(separatedBy: "\n#### ")[0]
            for key in try #require(grammar).keys {
                let row = table.split(separator: "\n").first { $0.hasPrefix("| `\(key.name)` |") }
                let fallback = key.fallback.map { "| `\($0)` |" } ?? (key.isRequired ? "| required |" : "| – |")
                #expect(row?.contains(fallback) == true, "\(key.name): \(row ?? "no row")")
            }
        }
    }

    /// The reasons of the shared checks have no prefix in the sources.
    @Test func `to OpenID Connect has every code, and no other`() throws {
        var text = ""
        let folders = ["Plugins/OIDCProvider", "Sources/MartletProvider/Tokens"]
        for folder in folders {
            let files = try #require(
                FileManager.default.enumerator(
                    at: Self.root.appendingPathComponent(folder), includingPropertiesForKeys: nil))
            for case let file as URL in files where file.pathExtension == "swift" {
                text += try String(contentsOf: file, encoding: .utf8)
            }
        }
        let direct = text.matches(of: /(?:rejected|unavailable|OIDCError)\(\s*(?:\.\w+(?:\([\w.]*\))?,)?\s*"([a-z_]+)"/)
        let interpolated = text.matches(of: /\\\(prefix\)\.([a-z_]+)"/)
        let shared = [
            "token_missing", "token_too_large", "malformed", "alg_not_allowed", "header_not_allowed", "unknown_key",
            "key_unusable",
        ]
        let written = Set(direct.map { String($0.1) } + interpolated.map { String($0.1) } + shared)
        let documented = Set(
            try Self.page("OpenIDConnect.md").matches(of: /`oidc\.([a-z_]+)`/).map { String($0.1) })
        #expect(written.count > 30 && written == documented, "\(written.symmetricDifference(documented))")
    }
}
