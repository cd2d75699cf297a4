internal import MartletServer

/// `martlet init`: writes a starter configuration; never overwrites a file.
struct InitCommand: Command {
    private let path: String

    /// - Throws: `UsageError` for standard output, which has no name for the next steps.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        path = options["config"] ?? ConfigurationPath.local
        guard path != "-" else { throw Options.UsageError(message: "--config must be the name of a file to write") }
    }

    func run() -> ExitCode {
        let name = TerminalText.escaped(path)
        if let reason = SystemFile.create(path, Array(StarterConfiguration.text.utf8), mode: 0o644) {
            Output.error("martlet init: cannot write \(name): \(reason)\n")
            return .configuration
        }
        Output.line(
            """
            \(name) written. Next steps:

              martlet check --config \(name)
              martlet user add ada --config \(name)
              martlet run --config \(name)
              martlet schema > martlet.schema.json     for editors; named in the first line of the file
            """)
        return .ok
    }

    static let grammar = CommandGrammar("init", "Write a starter configuration") { grammar in
        grammar.details = "Writes a commented configuration that runs unchanged. It never overwrites a file."
        grammar.options = [
            .value("config", "FILE", .file, "the file to write; default: config.yaml in the working directory")
                .short("c")
        ]
        grammar.example("martlet init", "writes config.yaml")
        grammar.exits = [.ok: "written", .configuration: "the file exists or cannot be written"]
    }
}
