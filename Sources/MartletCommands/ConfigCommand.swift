internal import MartletConfig
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet config show|migrate`: prints the effective configuration, or rewrites one of an older version.
struct ConfigCommand: Command {
    private enum Action {
        case show(asJSON: Bool)
        case migrate(isCheck: Bool, writes: Bool)
    }

    private let action: Action
    private let path: String
    private let registry: ProviderRegistry

    /// - Throws: `UsageError` if standard input is to be written.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        path = ConfigurationPath.of(options)
        registry = program.registry
        action =
            options.words.first == "migrate"
            ? .migrate(isCheck: options.has("check"), writes: options.has("write"))
            : .show(asJSON: options.has("json"))
        guard path != "-" || !options.has("write") else {
            throw Options.UsageError(message: "--write needs a file")
        }
    }

    func run() -> ExitCode {
        switch action {
        case .show(let asJSON): show(asJSON: asJSON)
        case .migrate(let isCheck, let writes): migrate(isCheck: isCheck, writes: writes)
        }
    }

    // MARK: Show

    private func show(asJSON: Bool) -> ExitCode {
        let (blueprint, diagnostics) = ConfigurationText.blueprint(path, registry)
        Output.report(diagnostics)
        guard let source = blueprint?.configuration.source else { return .configuration }
        let environment = SystemInformation.environment
        var ignored = Diagnostics()
        // A variable that is set is replaced by its own reference, so that the file's text is known.
        let written = ConfigurationNode.parse(
            source.text, file: source.file, environment: { name in environment(name).map { _ in "${\(name)}" } },
            into: &ignored)
        let root = ConfigurationNode.parse(
            source.text, file: source.file, environment: environment, into: &ignored)
        guard let root, let written else { return .internalFault }
        var kinds: [String: ConfigurationGrammar] = [:]
        for kind in registry.kinds { kinds[kind.rawValue] = registry.factory(for: kind)?.grammar }
        var effective = EffectiveConfiguration(kinds: kinds)
        let members = effective.document(root, source: written)
        if asJSON {
            Output.line(String(decoding: JSON.write(ConfigurationWriter.json(members)), as: UTF8.self))
            return .ok
        }
        let name = TerminalText.escaped(source.file)
        Output.line(
            """
            # The effective configuration of \(name), with every default.
            # \(ConfigCommand.note(effective.redactedCount))
            \(ConfigurationWriter.yaml(members))
            """)
        return .ok
    }

    private static func note(_ count: Int) -> String {
        switch count {
        case 0: "It has no secrets."
        case 1: "One value that is or may be secret is not shown."
        default: "\(count) values that are or may be secret are not shown."
        }
    }

    // MARK: Migrate

    private func migrate(isCheck: Bool, writes: Bool) -> ExitCode {
        let text: [UInt8]
        do throws(ArgumentFileError) {
            text = try ArgumentFile.readWhole(path, "the configuration", limit: ConfigurationText.limit)
        } catch {
            Output.error("martlet config migrate: \(TerminalText.escaped(error.message))\n")
            return .configuration
        }
        let migration: ConfigurationMigration
        do throws(ConfigurationError) {
            migration = try ConfigurationMigration(
                text, file: path == "-" ? ConfigurationText.standardInput : path)
        } catch {
            for diagnostic in error.diagnostics { Output.error(TerminalText.escaped(diagnostic.description) + "\n") }
            return .configuration
        }
        for change in migration.changes {
            Output.error(TerminalText.escaped("\(change.location): \(change.text)") + "\n")
        }
        if isCheck { return migration.changes.isEmpty ? .ok : .rejected }
        guard writes else {
            Output.bytes(migration.text)
            return .ok
        }
        guard !migration.changes.isEmpty, let reason = NewFile.replace(path, with: migration.text) else { return .ok }
        Output.error("martlet config migrate: cannot write \(TerminalText.escaped(path)): \(reason)\n")
        return .configuration
    }
}

extension ConfigCommand {
    static let grammar = CommandGrammar("config", "Show the effective configuration; rewrite one of an older version") {
        grammar in
        grammar.subcommands = [
            CommandGrammar("show", "Print the effective configuration, without secrets") { show in
                show.details = """
                    Prints the configuration with every default, in the order of the reference. Secrets are never printed:
                    they are REDACTED, and a text from the environment is shown as its variable. Secrets in files stay
                    there. What is printed is a configuration itself: with its secrets put back, it means the same.
                    """
                show.options = [.config, .flag("json", "print one JSON document")]
                show.exits = [.ok: "printed", .configuration: "the configuration has errors"]
            },
            CommandGrammar("migrate", "Rewrite a configuration of an older version") { migrate in
                migrate.details = """
                    Renames the keys and values that had other names in older versions, and prints the file. Comments and
                    everything else stay as they are. Each change is listed on standard error. A file that needs no change
                    is printed as it is.
                    """
                migrate.options = [
                    .config, .flag("check", "print nothing: only find out whether something would change"),
                    .flag("write", "write the file instead of standard output"),
                ]
                migrate.alternatives = [.atMostOne("check", "write")]
                migrate.exits = [
                    .ok: "done, or nothing to change", .rejected: "with --check: something would change",
                    .configuration: "the file cannot be read or written, or is not YAML",
                ]
            },
        ]
        grammar.exits = [
            .ok: "done, or nothing to change", .rejected: "migrate --check: something would change",
            .configuration: "the configuration has errors, or cannot be read or written",
        ]
        grammar.example("martlet config show --config /etc/martlet/config.yaml", "what a gateway really uses")
        grammar.example("martlet config migrate --check", "before an upgrade")
        grammar.example("martlet config migrate --write", "rewrites config.yaml")
    }
}
