internal import MartletConfig
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet config show`: prints the effective configuration.
struct ConfigCommand: Command {
    private let path: String
    private let asJSON: Bool
    private let registry: ProviderRegistry

    init(_ options: Options, _ program: Program) {
        path = ConfigurationPath.of(options)
        asJSON = options.has("json")
        registry = program.registry
    }

    func run() -> ExitCode {
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

    static let grammar = CommandGrammar("config", "Show the effective configuration") { grammar in
        grammar.subcommands = [
            CommandGrammar("show", "Print the effective configuration, without secrets") { show in
                show.details = """
                    Prints the configuration with every default, in the order of the reference. Secrets are never printed:
                    they are REDACTED, and a text from the environment is shown as its variable. Secrets in files stay
                    there. What is printed is a configuration itself: with its secrets put back, it means the same.
                    """
                show.options = [.config, .flag("json", "print one JSON document")]
            }
        ]
        grammar.exits = [.ok: "printed", .configuration: "the configuration has errors"]
        grammar.example("martlet config show --config /etc/martlet/config.yaml", "what a gateway really uses")
    }
}
