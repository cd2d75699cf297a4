internal import MartletAudit
internal import MartletCore
internal import MartletHTTP
internal import MartletJSON
package import MartletResponder

/// The endpoints of the admin listener; never served on a public one.
package final class AdminEndpoints: Sendable {
    private unowned let source: any AdminSource
    /// The last report of each loop, so that the counters of a loop that is too busy to respond do not disappear.
    private let latest = Lock<[Int: LoopReport]>([:])
    private let history = Lock(CounterHistory())
    private let events: RequestEvents

    package init(_ source: any AdminSource) {
        self.source = source
        events = RequestEvents { [weak source] in source?.watchRequests($0) }
    }

    /// How often ``recordCounters()`` is to be called.
    package static var interval: Duration { CounterHistory.interval }

    /// Records what everything has counted, so that the last ten minutes can be shown.
    package func recordCounters() async {
        // Of thousands of endpoints the states would hold up the loops every time.
        let report = await report(withEndpoints: false)
        let samples = CounterSamples(report, Traffic(report.loops)).all
        history.withLock { $0.record(samples, at: report.monotonicNow) }
    }

    /// Responds to a request, and records it if it is to change something.
    package func respond(to request: LocalRequest) async -> LocalResponse {
        // A reload may change both.
        let change = source.audit == nil ? nil : AdminChange(request, source.adminAccess)
        let response = await respondWithoutRecord(to: request)
        if let audit = source.audit, let change = change ?? AdminChange(request, source.adminAccess) {
            audit.record(change.event(response))
        }
        return response
    }

    private func respondWithoutRecord(to request: LocalRequest) async -> LocalResponse {
        var response = await decide(request)
        // A browser that guesses types may take a document for a page.
        if !response.fields.contains(where: { $0.name == "X-Content-Type-Options" }) {
            response.fields.append((name: "X-Content-Type-Options", value: "nosniff"))
        }
        return response
    }

    private func decide(_ request: LocalRequest) async -> LocalResponse {
        guard AdminHosts(source.adminHosts).accept(request.field("Host"), local: request.local) else {
            return AdminProblem.hostNotAllowed.response(request.requestID)
        }
        // Its target is no path, so that it names no resource.
        guard request.method != "CONNECT" else {
            return AdminProblem.methodNotAllowed(["GET", "HEAD"]).response(request.requestID)
        }
        guard let resource = AdminResource(path: request.path) else {
            return AdminProblem.notFound.response(request.requestID)
        }
        guard resource.methods.contains(request.method) else {
            return AdminProblem.methodNotAllowed(resource.methods).response(request.requestID)
        }
        let need = resource == .explain ? AdminExplain.need(request) : resource.need(request.method)
        if let rejection = source.adminAccess.rejection(of: request, for: need) {
            return rejection.response(request.requestID)
        }
        return await respond(to: request, resource)
    }

    private func respond(to request: LocalRequest, _ resource: AdminResource) async -> LocalResponse {
        switch resource {
        case .alive:
            source.isStalled ? .stalled : .text(200, "text/plain; charset=utf-8", "alive\n")
        case .ready: Readiness(source).response
        case .metrics: MetricsPage.response(await report(), accept: request.field("Accept"))
        case .status: await status(request)
        case .routes: await documents().routes
        case .providers: await documents().providers
        case .store: await documents().store
        case .accounts: await documents().accounts ?? AdminProblem.notFound.response(request.requestID)
        case .upstreams: await upstreams(request)
        case .file(let file): file.response
        case .events: AdminEvents.respond(to: request, events, source.loggedSubject)
        case .logLevel: AdminLogLevel.respond(to: request, source)
        case .explain: await AdminExplain(source).respond(to: request)
        case .drain(let upstream): AdminUpstreams.respond(to: request, upstream, isDrained: true, source)
        case .restore(let upstream): AdminUpstreams.respond(to: request, upstream, isDrained: false, source)
        case .refresh(let provider): await AdminProviders.respond(to: request, provider, source)
        case .claims(let subject):
            await AdminClaims(subject: subject, claims: source.operatorClaims).respond(to: request)
        case .sessions, .session, .sessionsOf:
            await AdminSessions(source.operatorSessions).respond(to: request, resource)
        case .subject, .disable, .enable:
            await AdminSubjects(source.operatorAccounts).respond(to: request, resource)
        case .reload: await AdminReload(source.reloadQueue).respond(to: request)
        }
    }

    private func documents() async -> AdminDocuments {
        AdminDocuments(await report(), source.configurationFacts, history.withLock { $0 })
    }

    /// A document for programs; browsers get the dashboard, which shows it.
    private func upstreams(_ request: LocalRequest) async -> LocalResponse {
        let accepted = request.field("Accept")?.split(separator: ",") ?? []
        if accepted.contains(where: { $0.contains("text/html") }) { return DashboardFile.page.response }
        let report = await report()
        let documents = AdminDocuments(report, ConfigurationFacts(), history.withLock { $0 })
        return AdminUpstreams.document(report) { documents.last(.upstream($0)) }
    }

    private func status(_ request: LocalRequest) async -> LocalResponse {
        let access = source.adminAccess
        return await documents().status(
            mayChange: access.rejection(of: request, for: .change) == nil, needsToken: access.isConfigured)
    }

    private func report(withEndpoints: Bool = true) async -> AdminReport {
        let fresh = await source.loopReports(withEndpoints: withEndpoints)
        let all = latest.withLock { latest in
            for var report in fresh {
                if !withEndpoints { report.endpoints = latest[report.loop]?.endpoints ?? [] }
                latest[report.loop] = report
            }
            return latest.values.sorted { $0.loop < $1.loop }
        }
        return source.adminReport(loops: all, responding: fresh.count)
    }
}

/// An error response of the admin listener, in the same format as those of public listeners (RFC 9457).
struct AdminProblem: Error {
    let status: Int
    let code: String
    var allow: String?
    var members: JSONObject = [:]

    static let notFound = AdminProblem(status: 404, code: "not_found")
    static func notFound(_ detail: String) -> AdminProblem { notFound.with(detail) }
    static func invalid(_ detail: String) -> AdminProblem {
        AdminProblem(status: 400, code: "request_invalid").with(detail)
    }
    static func unavailable(_ detail: String) -> AdminProblem {
        AdminProblem(status: 503, code: "auth_unavailable").with(detail)
    }
    static let busy = AdminProblem(status: 503, code: "busy")
    static func methodNotAllowed(_ methods: [String]) -> AdminProblem {
        AdminProblem(status: 405, code: "method_not_allowed", allow: methods.joined(separator: ", "))
    }
    /// The request is for another host: see ``AdminHosts``.
    static let hostNotAllowed = AdminProblem(status: 421, code: "host_not_allowed")

    /// The problem with what is wrong, in words.
    func with(_ detail: String) -> AdminProblem {
        var problem = self
        problem.members["detail"] = .string(detail)
        return problem
    }

    func response(_ requestID: String) -> LocalResponse {
        var document: JSONObject = [
            "type": .string("urn:martlet:problem:\(code)"), "title": .string("\(HTTPStatus.reason(status))"),
            "status": .integer(Int64(status)), "code": .string(code), "request_id": .string(requestID),
        ]
        for member in members.members { document[member.name] = member.value }
        var fields: [(name: String, value: String)] = [
            ("Content-Type", "application/problem+json"), ("Cache-Control", "no-store"),
        ]
        if let allow { fields.append(("Allow", allow)) }
        if status == 401 {
            let error = code == "credential_invalid" ? ", error=\"invalid_token\"" : ""
            fields.append(("WWW-Authenticate", "Bearer realm=\"martlet-admin\"\(error)"))
        }
        var response = LocalResponse(status: status, fields: fields, body: JSON.write(.object(document)) + [0x0A])
        response.reason = ErrorCode(rawValue: "admin.\(code)")
        return response
    }
}
