import Foundation
import MartletConfig
import MartletCore
import Testing

@testable import WeChatProvider

/// The guides cover WeChat's codes and keys, and their examples are valid.
@Suite struct `The guide to WeChat` {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../..")

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    private static func guide(_ name: String) throws -> String {
        try text("Sources/MartletServer/Documentation.docc/\(name).md")
    }

    @Test func `names every error code of the provider`() throws {
        let sources = try FileManager.default.subpathsOfDirectory(
            atPath: Self.root.appendingPathComponent("Plugins/WeChatProvider").path
        ).filter { $0.hasSuffix(".swift") }
        let pattern = try Regex(#""(wechat\.[a-z_]+)""#, as: (Substring, Substring).self)
        var codes: Set<String> = []
        for source in sources {
            for match in try Self.text("Plugins/WeChatProvider/\(source)").matches(of: pattern) {
                codes.insert(String(match.output.1))
            }
        }
        #expect(codes.count > 30)
        let page = try Self.guide("WeChat")
        for code in codes { #expect(page.contains("`\(code)`"), "\(code)") }
    }

    @Test(arguments: [
        ("### Kind wechat\n", WeChatConfiguration.grammar), ("#### `apps.*`\n", WeChatApp.grammar),
        ("#### `web` of WeChat\n", WebBlock.grammar),
    ])
    func `to the configuration has every key with its default`(title: String, grammar: ConfigurationGrammar?) throws {
        let page = try Self.guide("Configuration")
        let section = try #require(page.components(separatedBy: title).last).components(separatedBy: "\n###")[0]
        for key in try #require(grammar).keys {
            let row = section.split(separator: "\n").first { $0.hasPrefix("| `\(key.name)` |") }
            let fallback = key.fallback.map { "| `\($0)` |" } ?? (key.isRequired ? "| required |" : "| – |")
            #expect(row?.contains(fallback) == true, "\(key.name): \(row ?? "no row")")
        }
    }

    @Test func `shows a configuration that is accepted`() throws {
        let block = try #require(try Self.guide("WeChat").components(separatedBy: "```yaml\n").dropFirst().first)
            .components(separatedBy: "\n```")[0]
        let lines = block.split(separator: "\n").drop { !$0.contains("kind: wechat") }.dropFirst()
        let text = lines.joined(separator: "\n").replacing("app_secret_file", with: "app_secret")
        #expect(try Bench.configuration(text).apps.map(\.clientName) == ["ios", "web", "page", "mini"])
    }
}
