internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletServer

/// What every command that works on the stores of a configuration begins with.
struct ConfiguredCommand {
    private let path: String
    private let registry: ProviderRegistry

    /// - Parameter options: those of the command, with `--config` among them.
    init(_ options: Options, _ registry: ProviderRegistry) {
        path = ConfigurationPath.of(options)
        self.registry = registry
    }

    /// Reads the configuration, and passes it to the command.
    /// - Parameter name: the command's name, in front of its error.
    func run(
        _ name: String, _ body: (Blueprint, Services) async throws(StartError) -> ExitCode
    ) async -> ExitCode {
        let (blueprint, diagnostics) = ConfigurationText.blueprint(path, registry)
        Output.report(diagnostics)
        guard let blueprint else { return .configuration }
        do throws(StartError) {
            let services = try Services(sink: LogSink.standardError(), level: .error)
            defer { services.shutdown() }
            return try await body(blueprint, services)
        } catch {
            Output.error("martlet \(name): \(error)\n")
            return error.exit
        }
    }
}
