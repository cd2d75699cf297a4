import Foundation
import Testing

@testable import MartletPages

/// The templates and the tables of the guide `Pages.md`.
@Suite struct `The guide to pages` {
    private static let text = Result {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        return try String(
            contentsOf: here.appendingPathComponent("../../../Sources/MartletServer/Documentation.docc/Pages.md"),
            encoding: .utf8)
    }

    /// The templates by the name in their first line.
    private static func templates() throws -> [String: String] {
        var found: [String: String] = [:]
        for part in try text.get().components(separatedBy: "```html\n{{! ").dropFirst() {
            let lines = part.components(separatedBy: "\n```")[0]
            let name = lines.components(separatedBy: " ")[0]
            #expect(found.updateValue("{{! \(lines)\n", forKey: name) == nil)
        }
        return found
    }

    @Test(arguments: PageFixture.cases) func `has templates that show every page well formed`(one: PageCase) throws {
        let found = try Self.templates()
        let (templates, errors) = PageTemplates.load("") { (path, _) throws(PageFileError) in
            guard let text = found[String(path.dropFirst())] else { throw PageFileError(path, isTooLarge: false) }
            return Array(text.utf8)
        }
        #expect(templates != nil && errors == [], "\(errors)")
        #expect(found.count == PageTemplate.Name.allCases.count)
        var one = one
        one.site = PageSite(title: "Example", logo: "/auth/logo", templates: templates)
        for language in PageLanguage.allCases {
            let checker = PageChecker(one.text(language))
            // Only the sign-in page has a style sheet.
            #expect(checker.errors.filter { $0 != "no style with a nonce" } == [], "\(language)")
            #expect(checker.all("html").first?["lang"] == language.rawValue)
        }
    }

    @Test(arguments: PageTemplate.Name.allCases) func `lists every value of a template`(name: PageTemplate.Name) throws
    {
        let sections = try Self.text.get().components(separatedBy: "\n### ").filter { section in
            let title = section.prefix { $0 != "\n" }
            return title.hasPrefix("Values of") && (title.contains(name.rawValue) || title.contains("every page"))
        }
        #expect(sections.count == 2)
        let rows = sections.joined().split(separator: "\n").filter { $0.hasPrefix("| `") }
        for (value, kind) in TemplateSchema.schema(of: name).names {
            let row = rows.first { row in
                let names = row.split(separator: "|")[0]
                return names.contains("`\(value)`") || names.contains("`\(value)[]`")
            }
            guard let row else {
                Issue.record("\(name.rawValue): \(value)")
                continue
            }
            // Those of a notice are described once.
            guard case .list(let schema) = kind, !row.contains("as above") else { continue }
            for inner in schema.names.keys {
                #expect(row.contains("`\(inner)`"), "\(name.rawValue): \(value).\(inner)")
            }
        }
    }
}
