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

    func run(
        _ body: (Blueprint, Services) async throws(StartError) -> ExitCode
    ) async throws(StartError) -> ExitCode {
        let (blueprint, diagnostics) = ConfigurationText.blueprint(path, registry)
        Output.report(diagnostics)
        guard let blueprint else { return .configuration }
        let services = try Services.ofCommand()
        defer { services.shutdown() }
        return try await body(blueprint, services)
    }
}

extension Services {
    /// Those of a command, which logs errors alone, to standard error.
    static func ofCommand() throws(StartError) -> Services {
        try Services(sink: LogSink.standardError(), level: .error)
    }
}

extension Graph {
    /// The graph of a command, which replaces no other one.
    static func ofCommand(
        _ blueprint: Blueprint, _ services: Services, access: StoreAccess = .full
    ) throws(StartError) -> Graph {
        try build(
            blueprint, services, previous: nil, keys: IssuerKeysRegistry(),
            invalidator: CacheInvalidator(logger: services.logger), access: access)
    }
}
