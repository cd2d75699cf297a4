internal import MartletConfig
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet schema`: the grammar of `config.yaml` as a JSON Schema, with the keys of all registered providers.
struct SchemaCommand: Command {
    private let plugins: PluginOption
    private let registry: ProviderRegistry

    init(_ options: Options, _ program: Program) {
        plugins = PluginOption(options)
        self.registry = program.registry
    }

    func run() -> ExitCode {
        do throws(PluginOption.Failure) {
            Output.line(Self.text(of: try plugins.registry(addingTo: registry, for: "schema")))
            return .ok
        } catch {
            Output.error("martlet schema: \(error.message)\n")
            return .configuration
        }
    }

    static func text(of registry: ProviderRegistry) -> String {
        let document = ConfigurationSchema.document(
            providers: registry.kinds.map { ($0.rawValue, registry.factory(for: $0)?.grammar) })
        return String(decoding: JSON.write(document), as: UTF8.self)
    }

    static let grammar = CommandGrammar("schema", "Print the JSON Schema of the configuration") { grammar in
        grammar.details = "Prints the JSON Schema (2020-12) of the configuration, for editors."
        grammar.options = [
            .value(
                "plugin", "FILE", .file, "the shared library of a plugin, whose kinds of providers the schema has, too"
            ).repeatable
        ]
        grammar.example("martlet schema > martlet.schema.json", "for the first line of config.yaml")
        grammar.exits = [.ok: "printed", .configuration: "a library cannot be used"]
    }
}
