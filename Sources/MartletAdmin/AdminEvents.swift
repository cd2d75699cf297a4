internal import MartletCore
internal import MartletResponder

/// `GET /events`: finished requests as server-sent events (WHATWG HTML), with filters.
enum AdminEvents {
    /// - Parameter loggedSubject: a subject as access lines name it.
    static func respond(
        to request: LocalRequest, _ events: RequestEvents, _ loggedSubject: (String) -> String?
    ) -> LocalResponse {
        var wanted: [(name: String, value: String)] = []
        var decoder = FormDecoder(Array(request.query.utf8))
        guard let pairs = try? decoder.pairs() else { return invalid("the query is malformed", request) }
        for (name, value) in pairs {
            let name = String(decoding: name, as: UTF8.self)
            guard EventFilter.names.contains(name), !wanted.contains(where: { $0.name == name }) else {
                return invalid("the parameters are \(EventFilter.names.joined(separator: ", ")), once each", request)
            }
            let text = value.withBytes { String(decoding: $0, as: UTF8.self) }
            if !text.isEmpty { wanted.append((name, text)) }
        }
        var response = LocalResponse(
            status: 200,
            fields: [
                ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"), ("X-Accel-Buffering", "no"),
            ], body: [])
        if request.method == "HEAD" { return response }
        guard let parts = events.open(EventFilter(wanted, loggedSubject)) else {
            response = AdminProblem.busy.with("\(EventPace.readers) readers are connected").response(request.requestID)
            // Readers beyond the limit would take the connections that probes need.
            response.closes = true
            return response
        }
        response.parts = parts
        return response
    }

    private static func invalid(_ detail: String, _ request: LocalRequest) -> LocalResponse {
        AdminProblem.invalid(detail).response(request.requestID)
    }
}
