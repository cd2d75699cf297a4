internal import MartletAdmin
internal import MartletCore
internal import MartletDecisions
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet health`: queries the running gateway whether it is ready; for container health checks.
struct HealthCommand: Command {
    private static let timeout = Duration.seconds(3)

    private let admin: AdminAddress

    init(_ options: Options, _ program: Program) { admin = AdminAddress(options, program.registry) }

    func run() throws(StartError) -> ExitCode {
        let target = try admin.target()
        let response = try AdminClient(target, timeout: HealthCommand.timeout).request("/readyz")
        guard let line = HealthCommand.line(response) else {
            throw StartError(
                code: "server.not_ours", message: "the response from \(target.name) is not that of a gateway",
                exit: .unavailable)
        }
        Output.line(line)
        return response.status == 200 ? .ok : .unavailable
    }

    /// The state and every unhealthy dependency: `degraded: store down (connection refused)`; `nil` if it is not a
    /// response of `/readyz`.
    static func line(_ response: AdminClient.Response) -> String? {
        let limits = JSONLimits(maximumDepth: 4, maximumBytes: response.body.count)
        guard let document = try? JSON.parse(response.body, limits: limits),
            let state = document.object?["status"]?.string.flatMap(Readiness.State.init(rawValue:)),
            let listed = document.object?["checks"]?.array, response.status == (state.isServing ? 200 : 503)
        else { return nil }
        let checks = listed.compactMap { check -> String? in
            func text(_ name: String) -> String { check.object?[name]?.string ?? "" }
            let found = Readiness.Check(name: text("name"), state: text("state"), detail: text("detail"))
            guard !found.isHealthy else { return nil }
            return "\(found.name) \(found.state)" + (found.detail.isEmpty ? "" : " (\(found.detail))")
        }
        return checks.isEmpty ? state.rawValue : "\(state.rawValue): \(checks.joined(separator: ", "))"
    }

    static let grammar = CommandGrammar("health", "Check whether the running gateway is ready") { grammar in
        grammar.details =
            "Asks the admin listener of the running gateway whether it is ready; for container health checks."
        grammar.addAdminOptions()
        grammar.example("martlet health --admin http://127.0.0.1:9901", "without a configuration")
        grammar.exits = [
            .ok: "ready", .unavailable: "not ready or not running", .configuration: AdminAddress.configurationExit,
        ]
    }
}
