internal import MartletConfig
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet schema`: the grammar of `config.yaml` as a JSON Schema, with the keys of all registered providers.
struct SchemaCommand {
    private let registry: ProviderRegistry

    init(_ options: Options, _ registry: ProviderRegistry) { self.registry = registry }

    func run() -> ExitCode {
        Output.line(text)
        return .ok
    }

    var text: String {
        let document = ConfigurationSchema.document(
            providers: registry.kinds.map { ($0.rawValue, registry.factory(for: $0)?.grammar) })
        return String(decoding: JSON.write(document), as: UTF8.self)
    }
}
