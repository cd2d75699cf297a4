internal import MartletCore
internal import MartletIO
internal import MartletJSON
internal import MartletProxy

/// `POST /reload`: what SIGHUP does, with an answer.
///
/// It changes something, so it is for this machine alone, and for nothing that a page in a browser can send: browsers name
/// the page's origin with every POST, and a form has one of three media types.
struct AdminReload {
    /// Less than a handler may take.
    private static let limit = LocalLimits.patience - .seconds(1)
    private static let formTypes = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]

    private let gateway: Gateway

    init(_ gateway: Gateway) { self.gateway = gateway }

    func answer(_ request: LocalRequest) async -> LocalResponse {
        func problem(_ status: Int, _ code: String, _ diagnostics: [String]? = nil) -> LocalResponse {
            AdminProblem(status: status, code: code, allow: status == 405 ? "POST" : nil)
                .response(request.requestID, diagnostics: diagnostics)
        }
        guard request.method == "POST" else { return problem(405, "method_not_allowed") }
        guard !Self.isFromPage(request) else { return problem(403, "cross_site") }
        guard let local = request.local, local.isUnix || local.isLoopback else { return problem(403, "local_only") }
        guard let desk = gateway.reloadDesk else { return problem(404, "not_found") }
        switch await desk.ask(within: Self.limit) {
        case .done(let routes, let warnings):
            let document: JSONValue = [
                "status": "reloaded", "routes": .integer(Int64(routes)),
                "diagnostics": .array(warnings.map { .string($0) }),
            ]
            return .text(200, "application/json", String(decoding: JSON.write(document), as: UTF8.self) + "\n")
        case .refused(let diagnostics): return problem(422, "configuration_refused", diagnostics)
        case .ending: return problem(503, "ending")
        case .underWay: return problem(503, "reload_under_way")
        case .busy: return problem(503, "busy")
        }
    }

    private static func isFromPage(_ request: LocalRequest) -> Bool {
        if ["Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode"].contains(where: { request.field($0) != nil }) { return true }
        let type = request.field("Content-Type")?.lowercased().prefix { $0 != ";" }
        return type.map { formTypes.contains($0.filter { $0 != " " }) } ?? false
    }
}
