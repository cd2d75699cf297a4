internal import MartletServer

/// `martlet help [COMMAND...]`: the list of commands, or the help of one of them.
struct HelpCommand: Command {
    private let words: [String]

    init(_ options: Options, _ program: Program) { words = options.words }

    func run() -> ExitCode {
        guard let name = words.first else {
            Output.line(HelpCommand.overview)
            return .ok
        }
        guard let command = Program.command(name) else { return Program.unknown(name) }
        Output.line(HelpPage(command.grammar).page(for: words.dropFirst()).text)
        return .ok
    }

    static var overview: String {
        """
        usage: martlet COMMAND [OPTIONS]

        An auth gateway: authenticates every request, and passes the verified identity
        to upstreams in headers that no client can forge.

        Commands:
        \(TextLayout.terms(Program.commands.map { ($0.grammar.name, $0.grammar.summary) }))

        Environment:
        \(TextLayout.terms(ManualPage.environment))

        'martlet COMMAND --help' describes a command with its options and examples.

        """
    }

    static let grammar = CommandGrammar("help", "Print this list, or the help of a command") { grammar in
        grammar.arguments = [
            CommandArgument(
                placeholder: "COMMAND", kind: .command, summary: "a command, and one of its own commands",
                minimumCount: 0,
                maximumCount: 3)
        ]
        grammar.example("martlet help user add", "the same as 'martlet user add --help'")
        grammar.exits = [.ok: "printed"]
    }
}

/// `martlet version`: the version of the program.
struct VersionCommand: Command {
    init(_ options: Options, _ program: Program) {}

    func run() -> ExitCode {
        Output.line("martlet \(Gateway.version)")
        return .ok
    }

    static let grammar = CommandGrammar("version", "Print the version") { grammar in
        grammar.exits = [.ok: "printed"]
        grammar.example("martlet version", "one line")
    }
}
