internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletJSON
internal import MartletProvider

/// `martlet health`: asks the running gateway whether it is ready; what a container's health check runs.
struct HealthCommand {
    private static let patience = Duration.seconds(3)

    private let path: String
    private let address: String?
    private let registry: ProviderRegistry

    init(_ options: Options, _ registry: ProviderRegistry) {
        path = options["config"] ?? "config.yaml"
        address = options["address"]
        self.registry = registry
    }

    func run() -> ExitCode {
        do throws(StartError) {
            let place = try place()
            let answer = try AdminQuestion(place, patience: HealthCommand.patience).ask("/readyz")
            Output.line(HealthCommand.line(answer))
            return answer.status == 200 ? .ok : .unavailable
        } catch {
            Output.error("martlet health: \(error)\n")
            return error.exit
        }
    }

    /// The state and every dependency that is not well: `degraded: store down (connection refused)`.
    static func line(_ answer: AdminQuestion.Answer) -> String {
        let limits = JSONLimits(maximumDepth: 4, maximumBytes: answer.body.count)
        guard let document = try? JSON.parse(answer.body, limits: limits),
            let state = document.object?["status"]?.string
        else { return "status \(answer.status)" }
        let checks = (document.object?["checks"]?.array ?? []).compactMap { check -> String? in
            func text(_ name: String) -> String { check.object?[name]?.string ?? "" }
            let found = Readiness.Check(name: text("name"), state: text("state"), detail: text("detail"))
            guard !found.isWell else { return nil }
            return "\(found.name) \(found.state)" + (found.detail.isEmpty ? "" : " (\(found.detail))")
        }
        return checks.isEmpty ? state : "\(state): \(checks.joined(separator: ", "))"
    }

    private func place() throws(StartError) -> SocketEndpoint {
        let configured: SocketAddress
        if let address {
            guard let parsed = SocketAddress(address) else {
                throw StartError(code: "server.bad_address", message: "'\(address)' is not an address", exit: .usage)
            }
            configured = parsed
        } else {
            configured = try configuredAddress()
        }
        if case .ip(_, port: 0) = configured {
            throw StartError(
                code: "server.bad_address", message: "the admin port is chosen at the start; give it as --address",
                exit: .usage)
        }
        guard let endpoint = ListenerPlace.endpoint(configured) else {
            throw StartError(
                code: "server.bad_address",
                message:
                    "the admin listener is a socket that the gateway was started with; give its address as --address",
                exit: .usage)
        }
        return endpoint
    }

    private func configuredAddress() throws(StartError) -> SocketAddress {
        let (configuration, diagnostics) = GatewayConfiguration.load(
            path: path, environment: SystemInformation.environment, knownKinds: registry.kinds.map(\.rawValue))
        guard let configuration else {
            for diagnostic in diagnostics.sorted { Output.error("\(diagnostic)\n") }
            throw StartError(
                code: "server.no_configuration", message: "the configuration has mistakes", exit: .configuration)
        }
        guard let admin = configuration.admin else {
            throw StartError(
                code: "server.no_admin", message: "the configuration has no admin listener", exit: .configuration)
        }
        return admin.address.value
    }
}
