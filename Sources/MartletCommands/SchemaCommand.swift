internal import MartletConfig
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet schema`: the grammar of `config.yaml` as a JSON Schema, with the keys of all registered providers.
struct SchemaCommand {
    private let plugins: PluginOption
    private let registry: ProviderRegistry

    /// The options of the command line.
    static func options(_ arguments: [String]) throws(Options.UsageError) -> Options {
        try Options(arguments, allowing: [], repeatable: ["plugin"])
    }

    init(_ options: Options, _ registry: ProviderRegistry) {
        plugins = PluginOption(options)
        self.registry = registry
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

    /// The schema of a configuration with these kinds of providers.
    static func text(of registry: ProviderRegistry) -> String {
        let document = ConfigurationSchema.document(
            providers: registry.kinds.map { ($0.rawValue, registry.factory(for: $0)?.grammar) })
        return String(decoding: JSON.write(document), as: UTF8.self)
    }
}
