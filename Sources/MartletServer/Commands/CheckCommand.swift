internal import MartletConfig
internal import MartletProvider
internal import MartletRouter

/// `martlet check`: everything that `run` does short of I/O, and every mistake at once.
struct CheckCommand {
    private let path: String
    private let isOnline: Bool
    private let registry: ProviderRegistry

    init(_ options: Options, _ registry: ProviderRegistry) {
        path = options["config"] ?? "config.yaml"
        isOnline = options.has("online")
        self.registry = registry
    }

    func run() async -> ExitCode {
        let (blueprint, diagnostics) = Blueprint.read(
            path, registry: registry, environment: SystemInformation.environment)
        for diagnostic in diagnostics.sorted { Output.error("\(diagnostic)\n") }
        guard let blueprint else { return .configuration }
        Output.line("\(path): ok, \(blueprint.routes.configured.count) routes")
        return isOnline ? await OnlineCheck(blueprint).run() : .ok
    }
}
