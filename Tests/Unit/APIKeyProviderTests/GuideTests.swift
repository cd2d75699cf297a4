import Foundation
import MartletConfig
import Testing

@testable import APIKeyProvider

@Suite struct `The guides to API keys` {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../..")
    private static let pages = root.appendingPathComponent("Sources/MartletServer/Documentation.docc")

    /// The codes of a kind in the Swift files of a folder.
    private func codes(_ pattern: Regex<(Substring, Substring)>, in folder: String) throws -> Set<String> {
        let files = try #require(
            FileManager.default.enumerator(
                at: Self.root.appendingPathComponent(folder), includingPropertiesForKeys: nil))
        var found: Set<String> = []
        for case let file as URL in files where file.pathExtension == "swift" {
            found.formUnion(try String(contentsOf: file, encoding: .utf8).matches(of: pattern).map { String($0.1) })
        }
        return found
    }

    @Test func `have every key of the configuration with its default`() throws {
        let page = try String(contentsOf: Self.pages.appendingPathComponent("Configuration.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "### Kind api_key\n").last)
            .components(separatedBy: "\n### ")[0]
        let keys = try #require(APIKeyConfiguration.grammar).keys
        for key in keys {
            let row = section.split(separator: "\n").first { $0.hasPrefix("| `\(key.name)` |") }
            let fallback = key.fallback.map { "| `\($0)` |" } ?? "| – |"
            #expect(row?.contains(fallback) == true, "\(key.name): \(row ?? "no row")")
        }
        #expect(keys.count == 2)
    }

    @Test func `have every code, and no other`() throws {
        let page = try String(contentsOf: Self.pages.appendingPathComponent("APIKeys.md"), encoding: .utf8)
        let written = try codes(/"(api_key\.[a-z_]+)"/, in: "Plugins/APIKeyProvider")
            .union(codes(/(?:code|many): "(key\.[a-z_]+)"/, in: "Sources/MartletCommands"))
        let documented = Set(page.matches(of: /`((?:api_)?key\.[a-z_]+)`/).map { String($0.1) })
        #expect(!written.isEmpty && written == documented, "\(written.symmetricDifference(documented))")
    }
}
