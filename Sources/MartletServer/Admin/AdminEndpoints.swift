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

    func response(_ requestID: String) -> LocalResponse {
        let document: JSONValue = [
            "type": .string("urn:martlet:problem:\(code)"), "title": .string("\(HTTPStatus.reason(status))"),
            "status": .integer(Int64(status)), "code": .string(code), "request_id": .string(requestID),
        ]
        var fields: [(name: String, value: String)] = [
            ("Content-Type", "application/problem+json"), ("Cache-Control", "no-store"),
        ]
        if let allow { fields.append(("Allow", allow)) }
        return LocalResponse(status: status, fields: fields, body: JSON.write(document) + [0x0A])
    }
}
