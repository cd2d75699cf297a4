import Foundation
import MartletConfig
import Testing

@testable import PasswordProvider

@Suite struct GuideTests {
    private static let pages = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../../Sources/MartletServer/Documentation.docc")

    @Test func `of the configuration has every key with its default`() throws {
        let page = try String(contentsOf: Self.pages.appendingPathComponent("Configuration.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "### Kind password\n").last)
            .components(separatedBy: "\n### ")[0]
        let grammars = [PasswordConfiguration.grammar, HashSetting.grammar, ThrottleLimits.grammar]
        for key in grammars.compactMap({ $0 }).flatMap(\.keys) {
            let row = section.split(separator: "\n").first { $0.hasPrefix("| `\(key.name)` |") }
            let fallback = key.fallback.map { "| `\($0)` |" } ?? "| – |"
            #expect(row?.contains(fallback) == true, "\(key.name): \(row ?? "no row")")
        }
    }

    @Test func `to passwords has every code, and no other`() throws {
        let page = try String(contentsOf: Self.pages.appendingPathComponent("Password.md"), encoding: .utf8)
        let sources = try #require(
            FileManager.default.enumerator(
                at: Self.pages.appendingPathComponent("../../../Plugins/PasswordProvider"),
                includingPropertiesForKeys: nil))
        var text = ""
        for case let file as URL in sources where file.pathExtension == "swift" {
            text += try String(contentsOf: file, encoding: .utf8)
        }
        let written = Set(text.matches(of: /"(password\.[a-z_]+)"/).map { String($0.1) })
        let documented = Set(page.matches(of: /`(password\.[a-z_]+)`/).map { String($0.1) })
        #expect(!written.isEmpty && written == documented, "\(written.symmetricDifference(documented))")
    }
}
