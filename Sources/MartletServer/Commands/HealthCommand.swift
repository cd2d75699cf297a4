internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// `martlet health`: asks the running gateway whether it is ready; what a container's health check runs.
struct HealthCommand {
    private static let patience = Duration.seconds(3)

    private let place: AdminPlace

    init(_ options: Options, _ registry: ProviderRegistry) {
        place = AdminPlace(
            path: options["config"] ?? "config.yaml", address: options["address"], registry: registry)
    }

    func run() -> ExitCode {
        do throws(StartError) {
            let endpoint = try place.endpoint()
            let answer = try AdminQuestion(endpoint, patience: HealthCommand.patience).ask("/readyz")
            guard let line = HealthCommand.line(answer) else {
                throw StartError(
                    code: "server.not_ours", message: "what listens on \(endpoint) does not answer as a gateway does",
                    exit: .unavailable)
            }
            Output.line(line)
            return answer.status == 200 ? .ok : .unavailable
        } catch {
            Output.error("martlet health: \(error)\n")
            return error.exit
        }
    }

    /// The state and every dependency that is not well: `degraded: store down (connection refused)`; `nil` for anything else
    /// than the answer of `/readyz`.
    static func line(_ answer: AdminQuestion.Answer) -> String? {
        let limits = JSONLimits(maximumDepth: 4, maximumBytes: answer.body.count)
        guard let document = try? JSON.parse(answer.body, limits: limits),
            let state = document.object?["status"]?.string.flatMap(Readiness.State.init(rawValue:)),
            let listed = document.object?["checks"]?.array, answer.status == (state.isServing ? 200 : 503)
        else { return nil }
        let checks = listed.compactMap { check -> String? in
            func text(_ name: String) -> String { check.object?[name]?.string ?? "" }
            let found = Readiness.Check(name: text("name"), state: text("state"), detail: text("detail"))
            guard !found.isWell else { return nil }
            return "\(found.name) \(found.state)" + (found.detail.isEmpty ? "" : " (\(found.detail))")
        }
        return checks.isEmpty ? state.rawValue : "\(state.rawValue): \(checks.joined(separator: ", "))"
    }
}
