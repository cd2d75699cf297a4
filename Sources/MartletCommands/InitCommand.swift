internal import MartletServer

/// `martlet init`: writes a starter configuration; never overwrites a file.
struct InitCommand {
    private let path: String

    init(_ options: Options) { path = options["config"] ?? "config.yaml" }

    func run() -> ExitCode {
        let name = TerminalText.escaped(path)
        if let reason = NewFile.write(Array(StarterConfiguration.text.utf8), to: path, mode: 0o644) {
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
}
