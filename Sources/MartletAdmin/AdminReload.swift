internal import MartletJSON
internal import MartletResponder

/// `POST /reload`: the reload of SIGHUP, with a response.
struct AdminReload {
    /// Less than the timeout of a handler.
    private static let timeout = LocalLimits.timeout - .seconds(1)

    private let queue: ReloadQueue?

    init(_ queue: ReloadQueue?) { self.queue = queue }

    func respond(to request: LocalRequest) async -> LocalResponse {
        func problem(_ status: Int, _ code: String, _ diagnostics: [String]? = nil) -> LocalResponse {
            var problem = AdminProblem(status: status, code: code)
            problem.members["diagnostics"] = diagnostics.map { .array($0.map { .string($0) }) }
            return problem.response(request.requestID)
        }
        guard let queue else { return problem(404, "not_found") }
        let trigger = ReloadTrigger.admin(address: request.client, requestID: request.requestID)
        switch await queue.request(as: trigger, timeout: Self.timeout) {
        case .done(let routes, let warnings):
            return .admin([
                "status": "reloaded", "routes": .integer(Int64(routes)),
                "diagnostics": .array(warnings.map { .string($0) }),
            ])
        case .rejected(let diagnostics): return problem(422, "configuration_refused", diagnostics)
        case .ending: return problem(503, "ending")
        case .underWay: return problem(503, "reload_under_way")
        case .busy: return problem(503, "busy")
        }
    }
}
