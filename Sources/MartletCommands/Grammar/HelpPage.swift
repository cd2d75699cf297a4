internal import MartletServer

/// The text of `martlet COMMAND --help`.
struct HelpPage {
    /// The program's name and the names of the command: `martlet user add`.
    let path: [String]
    let grammar: CommandGrammar
    /// What exit codes mean, its own or those of its command.
    let exits: KeyValuePairs<ExitCode, String>
    let examples: [CommandGrammar.Example]

    init(_ command: CommandGrammar) {
        path = ["martlet", command.name]
        grammar = command
        exits = command.exits
        examples = command.examples
    }

    private init(_ page: HelpPage, _ subcommand: CommandGrammar) {
        path = page.path + [subcommand.name]
        grammar = subcommand
        exits = subcommand.exits.isEmpty ? page.exits : subcommand.exits
        let start = (page.path + [subcommand.name]).joined(separator: " ")
        examples =
            subcommand.examples + page.examples.filter { $0.line == start || $0.line.hasPrefix("\(start) ") }
    }

    /// The page of a subcommand; `nil` if there is none of this name.
    func subpage(_ name: String) -> HelpPage? { grammar[name].map { HelpPage(self, $0) } }

    var subpages: [HelpPage] { grammar.listedSubcommands.map { HelpPage(self, $0) } }

    /// The page of the longest known path of words.
    func page(for words: some Sequence<String>) -> HelpPage {
        var page = self
        for word in words {
            guard let next = page.subpage(word) else { break }
            page = next
        }
        return page
    }

    var name: String { path.joined(separator: " ") }

    var text: String {
        var sections = ["usage: " + usageLines.joined(separator: "\n       ")]
        let details = grammar.details.isEmpty ? "\(grammar.summary)." : grammar.details
        sections.append(TextLayout.paragraphs(details))
        if !grammar.listedSubcommands.isEmpty {
            sections.append("Commands:\n" + TextLayout.terms(grammar.listedSubcommands.map { ($0.name, $0.summary) }))
        }
        if !grammar.arguments.isEmpty {
            sections.append("Arguments:\n" + TextLayout.terms(grammar.arguments.map { ($0.usage, $0.summary) }))
        }
        let options = grammar.allOptions
        if !options.isEmpty {
            sections.append("Options:\n" + TextLayout.terms(options.map { ($0.term, $0.description) }))
        }
        if !examples.isEmpty {
            sections.append(
                "Examples:\n" + examples.map { "  \($0.line)\n      \($0.purpose)" }.joined(separator: "\n"))
        }
        sections.append("Exit codes:\n" + TextLayout.terms(exitRows.map { (String($0.code.rawValue), $0.meaning) }))
        if !grammar.listedSubcommands.isEmpty {
            sections.append(
                TextLayout.paragraphs("'\(name) COMMAND --help' describes one of the commands with its options."))
        }
        return sections.joined(separator: "\n\n") + "\n"
    }

    /// The exit codes by number, 64 among them.
    var exitRows: [(code: ExitCode, meaning: String)] {
        var rows = exits.map { (code: $0.key, meaning: $0.value) }
        if rows.isEmpty { rows.append((.ok, "done")) }
        if !rows.contains(where: { $0.code == .usage }) { rows.append((.usage, "usage")) }
        return rows.sorted { $0.code.rawValue < $1.code.rawValue }
    }

    /// One line for a command, or for each of its subcommands.
    private var usageLines: [String] {
        guard grammar.subcommands.isEmpty else { return subpages.flatMap(\.usageLines) }
        return [TextLayout.usage(name, usageParts).split(separator: "\n").joined(separator: "\n       ")]
    }

    /// The arguments and options of a usage line; alternatives stand together.
    var usageParts: [String] {
        var parts = grammar.arguments.map(\.usage)
        var shown: Set<String> = []
        for option in grammar.options.filter({ $0.isRequired || isInGroup($0.name) })
            + grammar.options.filter({ !$0.isRequired && !isInGroup($0.name) }) where !shown.contains(option.name)
        {
            let group = grammar.alternatives.first { $0.names.first == option.name }
            let members = group?.names.compactMap { name in grammar.options.first { $0.name == name } } ?? [option]
            shown.formUnion(members.map(\.name))
            let text = members.map(\.usage).joined(separator: " | ")
            if group?.isRequired == true {
                parts.append(members.count > 1 ? "(\(text))" : text)
            } else {
                parts.append(
                    option.isRequired ? text : "[\(text)]" + (option.isRepeatable ? "..." : ""))
            }
        }
        return parts
    }

    private func isInGroup(_ name: String) -> Bool {
        grammar.alternatives.contains { $0.isRequired && $0.names.first == name }
    }
}

extension CommandOption {
    /// The summary, with whether it is required or repeatable.
    var description: String {
        if isRequired { return "\(summary); required" }
        return isRepeatable ? "\(summary); may be repeated" : summary
    }
}
