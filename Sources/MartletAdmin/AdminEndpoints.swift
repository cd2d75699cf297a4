internal import MartletCore
internal import MartletHTTP
internal import MartletJSON
internal import MartletReports
package import MartletResponder
private import Synchronization

/// The endpoints of the admin listener; never served on a public one.
package final class AdminEndpoints: Sendable {
    private unowned let source: any AdminSource
    /// The last report of each loop, so that the counters of a loop that is too busy to respond do not disappear.
    private let latest = Mutex<[Int: LoopReport]>([:])

    package init(_ source: any AdminSource) { self.source = source }

    /// Responds to a request.
    package func respond(to request: LocalRequest) async -> LocalResponse {
        guard AdminHosts(source.adminHosts).accept(request.field("Host"), local: request.local) else {
            return AdminProblem.hostNotAllowed.response(request.requestID)
        }
        if request.path == "/reload" { return await AdminReload(source.reloadQueue).respond(to: request) }
        if let subject = AdminClaims.subject(in: request.path) {
            return await AdminClaims(subject, source.claimAdministration).respond(to: request)
        }
        if let change = AdminUpstreams.change(in: request.path) {
            return AdminUpstreams.respond(to: request, change, source)
        }
        guard let page = Page(rawValue: request.path) else { return AdminProblem.notFound.response(request.requestID) }
        guard request.method == "GET" || request.method == "HEAD" else {
            return AdminProblem.methodNotAllowed.response(request.requestID)
        }
        switch page {
        case .alive: return .text(200, "text/plain; charset=utf-8", "alive\n")
        case .ready, .health: return Readiness(source).response
        case .metrics: return .text(200, MetricsPage.mediaType, MetricsPage(await report()).text)
        case .accounts: return AccountsPage.response(await report(), request.requestID)
        case .upstreams: return AdminUpstreams.response(await report(), accept: request.field("Accept"))
        case .dashboard: return Dashboard(await report()).response
        }
    }

    private enum Page: String {
        case alive = "/livez"
        case ready = "/readyz"
        case health = "/healthz"
        case metrics = "/metrics"
        case accounts = "/accounts"
        case upstreams = "/upstreams"
        case dashboard = "/"
    }

    private func report() async -> AdminReport {
        let fresh = await source.loopReports()
        let all = latest.withLock { latest in
            for report in fresh { latest[report.loop] = report }
            return latest.values.sorted { $0.loop < $1.loop }
        }
        return source.adminReport(loops: all, responding: fresh.count)
    }
}

/// An error response of the admin listener, in the same format as those of public listeners (RFC 9457).
struct AdminProblem: Error {
    let status: Int
    let code: String
    /// The value of `Allow`.
    let allow: String?

    static let notFound = AdminProblem(status: 404, code: "not_found", allow: nil)
    static let methodNotAllowed = AdminProblem(status: 405, code: "method_not_allowed", allow: "GET, HEAD")
    /// The request is for another host: see ``AdminHosts``.
    static let hostNotAllowed = AdminProblem(status: 421, code: "host_not_allowed", allow: nil)

    /// - Parameter diagnostics: one line each; `nil` omits the member.
    func response(_ requestID: String, diagnostics: [String]? = nil) -> LocalResponse {
        response(requestID, with: diagnostics.map { ["diagnostics": .array($0.map { .string($0) })] } ?? [:])
    }

    /// - Parameter members: more members of the document.
    func response(_ requestID: String, with members: JSONObject) -> LocalResponse {
        var document: JSONObject = [
            "type": .string("urn:martlet:problem:\(code)"), "title": .string("\(HTTPStatus.reason(status))"),
            "status": .integer(Int64(status)), "code": .string(code), "request_id": .string(requestID),
        ]
        for member in members.members { document[member.name] = member.value }
        var fields: [(name: String, value: String)] = [
            ("Content-Type", "application/problem+json"), ("Cache-Control", "no-store"),
        ]
        if let allow { fields.append(("Allow", allow)) }
        var response = LocalResponse(status: status, fields: fields, body: JSON.write(.object(document)) + [0x0A])
        response.reason = ErrorCode(rawValue: "admin.\(code)")
        return response
    }
}
