internal import MartletServer

/// `martlet completion bash|zsh|fish`: a script that completes commands, options and files.
struct CompletionCommand: Command {
    enum Shell: String, CaseIterable { case bash, zsh, fish }

    private let shell: Shell

    init(_ options: Options, _ program: Program) {
        shell = options.words.first.flatMap(Shell.init) ?? .bash
    }

    func run() -> ExitCode {
        Output.line(CompletionCommand.script(shell))
        return .ok
    }

    static func script(_ shell: Shell) -> String {
        let tree = CompletionTree(Program.commands.map { $0.grammar })
        switch shell {
        case .bash: return tree.bash
        case .zsh: return tree.zsh
        case .fish: return tree.fish
        }
    }

    static let grammar = CommandGrammar("completion", "Print a script for completion in a shell") { grammar in
        grammar.details = """
            Prints a script that completes commands, options, and the files and choices that are their values. It knows
            all of them itself: completing runs no program.
            """
        grammar.subcommands = [
            CommandGrammar("bash", "For bash 4.4 or newer; it needs no bash-completion") { bash in
                bash.example("martlet completion bash > /etc/bash_completion.d/martlet", "for every new shell")
            },
            CommandGrammar("zsh", "For zsh; the file has to be named _martlet, in a folder of fpath"),
            CommandGrammar("fish", "For fish 3 or newer"),
        ]
        grammar.example("source <(martlet completion bash)", "in this shell, or in .bashrc")
        grammar.example("martlet completion zsh > ~/.zfunc/_martlet", "with fpath+=~/.zfunc before compinit")
        grammar.example("martlet completion fish > ~/.config/fish/completions/martlet.fish", "for every new shell")
        grammar.exits = [.ok: "printed"]
    }
}
