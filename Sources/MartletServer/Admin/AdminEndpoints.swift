internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletJSON
internal import MartletProxy
private import Synchronization

/// What operators ask on the admin listener; never on the public one.
final class AdminEndpoints: Sendable {
    private unowned let gateway: Gateway
    /// What each loop told last: a loop that is too busy to answer must not make its counters vanish.
    private let known = Mutex<[Int: LoopReport]>([:])

    init(_ gateway: Gateway) { self.gateway = gateway }

    func answer(_ request: LocalRequest) async -> LocalResponse {
        let hosts = AdminHosts(gateway.graph.blueprint.configuration.admin?.hosts ?? [])
        guard hosts.accept(request.field("Host"), local: request.local) else {
            return AdminProblem.hostNotAllowed.response(request.requestID)
        }
        if request.path == "/reload" { return await AdminReload(gateway).answer(request) }
        guard let page = Page(rawValue: request.path) else { return AdminProblem.notFound.response(request.requestID) }
        guard request.method == "GET" || request.method == "HEAD" else {
            return AdminProblem.methodNotAllowed.response(request.requestID)
        }
        switch page {
        case .alive: return .text(200, "text/plain; charset=utf-8", "alive\n")
        case .ready, .health: return Readiness(gateway).response
        case .metrics: return .text(200, MetricsPage.mediaType, MetricsPage(await report()).text)
        case .dashboard: return Dashboard(await report()).response
        }
    }

    private enum Page: String {
        case alive = "/livez"
        case ready = "/readyz"
        case health = "/healthz"
        case metrics = "/metrics"
        case dashboard = "/"
    }

    private func report() async -> AdminReport {
        let fresh = await gateway.reports()
        let all = known.withLock { known in
            for report in fresh { known[report.loop] = report }
            return known.values.sorted { $0.loop < $1.loop }
        }
        return AdminReport(gateway, loops: all, answering: fresh.count)
    }
}

/// A request that the admin listener has no page for, worded like the public listener's refusals (RFC 9457).
struct AdminProblem {
    let status: Int
    let code: String
    /// The value of `Allow`.
    let allow: String?

    static let notFound = AdminProblem(status: 404, code: "not_found", allow: nil)
    static let methodNotAllowed = AdminProblem(status: 405, code: "method_not_allowed", allow: "GET, HEAD")
    /// The request was meant for another name: see ``AdminHosts``.
    static let hostNotAllowed = AdminProblem(status: 421, code: "host_not_allowed", allow: nil)

    /// - Parameter diagnostics: what is wrong, each in one line; `nil` leaves the member out.
    func response(_ requestID: String, diagnostics: [String]? = nil) -> LocalResponse {
        var document: JSONObject = [
            "type": .string("urn:martlet:problem:\(code)"), "title": .string("\(HTTPStatus.reason(status))"),
            "status": .integer(Int64(status)), "code": .string(code), "request_id": .string(requestID),
        ]
        if let diagnostics { document["diagnostics"] = .array(diagnostics.map { .string($0) }) }
        var fields: [(name: String, value: String)] = [
            ("Content-Type", "application/problem+json"), ("Cache-Control", "no-store"),
        ]
        if let allow { fields.append(("Allow", allow)) }
        var response = LocalResponse(status: status, fields: fields, body: JSON.write(.object(document)) + [0x0A])
        response.reason = ErrorCode(rawValue: "admin.\(code)")
        return response
    }
}
