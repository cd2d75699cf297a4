internal import MartletConfig

/// The manual page `martlet.yaml(5)`: every key of the configuration, from the same grammar as the JSON Schema.
struct ConfigurationManual {
    let version: String
    let date: String
    let providers: [(kind: String, grammar: ConfigurationGrammar?)]

    var text: String {
        var page = Roff()
        page.title("MARTLET.YAML", section: 5, date: date, source: "Martlet \(version)")
        page.section("NAME")
        page.line("martlet.yaml \\- the configuration of the auth gateway Martlet")
        page.section("DESCRIPTION")
        page.paragraph(
            """
            The file is YAML in UTF-8, one document of at most 16 MiB. A key that is not listed here, a key that stands
            twice, and a value of another type are errors, which `martlet check` reports with their positions.

            Durations are a whole number and one unit: `250ms`, `10s`, `15m`, `1h`, `30d`. Sizes likewise: `512B`,
            `16KiB`, `10MiB`, `1GiB`. `${VAR}` and `${VAR:-default}` in values are replaced by environment variables;
            `$${` is a literal `${`. Paths are relative to the file.
            """)
        page.section("KEYS")
        add(GatewayConfiguration.grammar, "", to: &page)
        page.section("PROVIDERS")
        page.paragraph("An entry of `providers` has the keys of its `kind`, and those of every kind.")
        page.subsection("every kind")
        for key in ProviderConfiguration.sharedKeys(besides: ConfigurationGrammar()) { page.term(key) }
        for (kind, grammar) in providers {
            guard let grammar else { continue }
            add(grammar, "kind \(kind)", to: &page)
        }
        page.section("SEE ALSO")
        page.line("\\fBmartlet\\fR(1)")
        return page.text
    }

    /// The keys of a block, then those of the blocks in it.
    private func add(_ grammar: ConfigurationGrammar, _ path: String, to page: inout Roff) {
        page.subsection(path.isEmpty ? "the file" : path)
        for group in grammar.oneOf {
            page.paragraph("Exactly one of \(group.map { "`\($0)`" }.joined(separator: ", ")) is required.")
        }
        for key in grammar.keys { page.term(key) }
        for key in grammar.keys {
            for (suffix, inner) in key.shape.blocks {
                add(inner, (path.isEmpty ? key.name : "\(path).\(key.name)") + suffix, to: &page)
            }
        }
    }
}

extension Roff {
    fileprivate mutating func term(_ key: ConfigurationGrammar.Key) {
        var facts = [key.shape.typeText]
        if key.isRequired { facts.append("required") }
        if let fallback = key.fallback { facts.append("default `\(fallback)`") }
        term(bold: key.name, "\(facts.joined(separator: "; ")). \(key.summary)")
    }
}

extension ConfigurationGrammar.Shape {
    /// The type in words: `list of blocks (not empty)`.
    var typeText: String {
        switch self {
        case .text, .literal: "text"
        case .pattern: "text"
        case .boolean: "boolean"
        case .integer(let range) where range.lowerBound == range.upperBound: "\(range.lowerBound)"
        case .integer(let range) where range.upperBound == .max: "integer from \(range.lowerBound)"
        case .integer(let range): "integer \(range.lowerBound)\u{2013}\(range.upperBound)"
        case .number: "number"
        case .duration: "duration"
        case .size: "size"
        case .url: "URL"
        case .path: "path"
        case .choice(let names): names.map { "`\($0)`" }.joined(separator: ", ")
        case .constant(let text): "`\(text)`"
        case .list(let element, let isNotEmpty):
            "list of \(element.pluralText)" + (isNotEmpty ? " (not empty)" : "")
        case .map(let element): "map of \(element.pluralText)"
        case .block, .provider, .condition, .authorize: "block"
        case .either(let shapes): shapes.map(\.typeText).joined(separator: " or ")
        case .unsupported: "not supported yet"
        case .anything: "any value"
        }
    }

    private var pluralText: String {
        switch self {
        case .block, .provider, .condition, .authorize: "blocks"
        case .text, .literal, .pattern: "texts"
        case .url: "URLs"
        case .path: "paths"
        case .integer, .number: "numbers"
        case .duration: "durations"
        default: "(\(typeText))"
        }
    }
}
