internal import MartletServer

/// The manual page `martlet(1)`, in the macros of man(7).
struct ManualPage {
    let version: String
    /// `2026-01-31`.
    let date: String
    let commands: [CommandGrammar]

    /// What the program reads from the environment, for this page and for help.
    static let environment = [
        (
            term: ConfigurationPath.variable,
            meaning: "the configuration of commands without --config; without both it is config.yaml in the working "
                + "directory, else \(ConfigurationPath.system)"
        ),
        (
            term: "MARTLET_ADMIN_TOKEN_FILE",
            meaning:
                "the admin token of commands that ask the running gateway, without --token-file and a token in the "
                + "configuration"
        ),
        (term: "NO_COLOR", meaning: "if it is not empty, no colors on a terminal"),
    ]

    private static let files = [
        (term: "config.yaml", meaning: "the configuration; see martlet.yaml(5)"),
        (term: ConfigurationPath.system, meaning: "the configuration of an installed gateway"),
    ]

    private static let signals = [
        (term: "SIGTERM, SIGINT", meaning: "finish requests in progress and end; a second one ends immediately"),
        (term: "SIGHUP", meaning: "reload the configuration"),
        (term: "SIGUSR2", meaning: "hand the listeners over to a new process of the executable"),
    ]

    private static let exits: [(code: ExitCode, meaning: String)] = [
        (.ok, "success"), (.rejected, "negative, as the command describes"), (.usage, "wrong usage"),
        (.unavailable, "something that is required is unavailable"),
        (.internalFault, "an internal error, or standard output cannot be written"),
        (.configuration, "the configuration has errors"),
    ]

    var text: String {
        var page = Roff()
        page.title("MARTLET", section: 1, date: date, source: "Martlet \(version)")
        page.section("NAME")
        page.line("martlet \\- auth gateway and its commands")
        page.section("SYNOPSIS")
        page.line("\\fBmartlet\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]")
        page.section("DESCRIPTION")
        page.paragraph(
            "Martlet is a reverse proxy that authenticates every request, and passes the verified identity to upstreams in "
                + "headers that no client can forge. One executable serves, checks its configuration, explains decisions "
                + "and manages users, accounts, keys and sessions.")
        page.paragraph("Options may stand before or after other arguments, as --name VALUE or --name=VALUE.")
        page.section("COMMANDS")
        for command in commands { add(HelpPage(command), to: &page) }
        page.section("ENVIRONMENT")
        for row in Self.environment { page.term(bold: row.term, row.meaning) }
        page.section("FILES")
        for row in Self.files { page.term(bold: row.term, row.meaning) }
        page.section("SIGNALS")
        for row in Self.signals { page.term(bold: row.term, row.meaning) }
        page.section("EXIT STATUS")
        for row in Self.exits { page.term(bold: String(row.code.rawValue), row.meaning) }
        page.section("SEE ALSO")
        page.line("\\fBmartlet.yaml\\fR(5)")
        return page.text
    }

    private func add(_ command: HelpPage, to page: inout Roff) {
        page.subsection(command.name)
        page.paragraph(command.grammar.details.isEmpty ? command.grammar.summary + "." : command.grammar.details)
        addUsage(of: command, to: &page)
        for option in command.grammar.allOptions { page.term(option) }
        let pages = [command] + command.subpages.flatMap { [$0] + $0.subpages }
        let examples = pages.flatMap(\.grammar.examples)
        if !examples.isEmpty { page.paragraph("Examples:") }
        for example in examples { page.example(example.line, example.purpose) }
        for page_ in pages where page_.path.count == 2 || !page_.grammar.exits.isEmpty {
            addExits(of: page_, hasOwn: page_.path.count > 2, to: &page)
        }
    }

    private func addUsage(of command: HelpPage, to page: inout Roff) {
        guard !command.subpages.isEmpty else { return page.usage(command.name, command.usageParts) }
        for subpage in command.subpages {
            guard subpage.subpages.isEmpty else {
                page.paragraph(subpage.grammar.details)
                addUsage(of: subpage, to: &page)
                continue
            }
            page.usage(subpage.name, subpage.usageParts)
            page.indented(
                subpage.grammar.details.isEmpty ? subpage.grammar.summary + "." : subpage.grammar.details)
            for argument in subpage.grammar.arguments {
                page.indented("\(argument.placeholder): \(argument.summary).")
            }
        }
    }

    private func addExits(of command: HelpPage, hasOwn: Bool, to page: inout Roff) {
        guard hasOwn || !command.exits.isEmpty else { return }
        let rows = command.exitRows.map { "\($0.code.rawValue) \($0.meaning)" }.joined(separator: "; ")
        page.paragraph("Exit codes of \(command.name): \(rows).")
    }
}

/// A text in the macros of man(7), in lines of at most 80 bytes.
struct Roff {
    private(set) var text = ""

    mutating func title(_ name: String, section: Int, date: String, source: String) {
        text += ".TH \(name) \(section) \"\(date)\" \"\(source)\" \"Martlet\"\n"
    }

    /// Whether a paragraph would begin below a heading, where it needs no macro.
    private var isAfterHeading = false

    mutating func section(_ name: String) { heading(".SH \(name)") }
    mutating func subsection(_ name: String) { heading(".SS \"\(Roff.escaped(name))\"") }

    private mutating func heading(_ line: String) {
        text += line + "\n"
        isAfterHeading = true
    }

    /// A line that has its markup already.
    mutating func line(_ marked: String) {
        text += marked + "\n"
        isAfterHeading = false
    }

    /// A paragraph; one sentence a line, as the macros want it.
    mutating func paragraph(_ plain: String) {
        for part in plain.split(separator: "\n\n") {
            begin(".PP\n")
            add(String(part))
        }
    }

    private mutating func begin(_ macro: String) {
        if !isAfterHeading { text += macro }
        isAfterHeading = false
    }

    /// A paragraph below a usage line.
    mutating func indented(_ plain: String) {
        for part in plain.split(separator: "\n\n") {
            text += ".IP\n"
            add(String(part))
        }
    }

    mutating func term(bold term: String, _ meaning: String) {
        isAfterHeading = false
        text += ".TP\n\\fB\(Roff.escaped(term))\\fR\n"
        add(meaning)
    }

    mutating func term(_ option: CommandOption) {
        let value = option.placeholder.map { " \\fI\(Roff.escaped($0))\\fR" } ?? ""
        isAfterHeading = false
        let names = option.names.map { "\\fB\(Roff.escaped($0))\\fR" }.joined(separator: ", ")
        text += ".TP\n\(names)\(value)\n"
        add(option.description)
    }

    mutating func usage(_ name: String, _ parts: [String]) {
        begin(".PP\n")
        text += "\\fB\(Roff.escaped(name))\\fR\n"
        for part in parts { text += Roff.guarded(Roff.escaped(part)) + "\n" }
    }

    mutating func example(_ line: String, _ purpose: String) {
        text += ".IP\n\\fB\(Roff.escaped(line))\\fR\n.br\n"
        add(purpose)
    }

    private mutating func add(_ plain: String) {
        for sentence in Roff.sentences(plain) {
            for line in TextLayout.wrap(Roff.marked(sentence), width: 78) { text += Roff.guarded(line) + "\n" }
        }
    }

    private static func sentences(_ text: String) -> [String] {
        var sentences: [String] = []
        var sentence: [Substring] = []
        for word in text.split(whereSeparator: \.isWhitespace) {
            sentence.append(word)
            if word.last == "." || word.last == ":" {
                sentences.append(sentence.joined(separator: " "))
                sentence = []
            }
        }
        return sentence.isEmpty ? sentences : sentences + [sentence.joined(separator: " ")]
    }

    /// The text with what is between backticks in bold.
    private static func marked(_ text: String) -> String {
        let parts = text.split(separator: "`", omittingEmptySubsequences: false)
        // A backtick without its other half is left out.
        guard parts.count % 2 == 1 else { return escaped(text.filter { $0 != "`" }) }
        return parts.enumerated().map { index, part in
            index % 2 == 1 ? "\\fB\(escaped(String(part)))\\fR" : escaped(String(part))
        }.joined()
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            case "^": result += "\\(ha"
            case "~": result += "\\(ti"
            case "`": result += "\\(ga"
            case "\"": result += "\\(dq"
            default:
                if scalar.isASCII {
                    result.unicodeScalars.append(scalar)
                } else {
                    let digits = String(scalar.value, radix: 16, uppercase: true)
                    result += "\\[u\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)]"
                }
            }
        }
        return result
    }

    /// A line that does not begin with a request.
    private static func guarded(_ line: String) -> String {
        line.hasPrefix(".") || line.hasPrefix("'") ? "\\&\(line)" : line
    }
}
