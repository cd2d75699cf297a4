internal import MartletAccounts
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
internal import MartletResponder
internal import MartletSession

/// `/sessions`: GET lists the sessions of a subject; DELETE of `/sessions/{id}` ends one, of
/// `/subjects/{subject}/sessions` all of a subject.
struct AdminSessions {
    private let sessions: OperatorSessions

    init(_ sessions: OperatorSessions) { self.sessions = sessions }

    /// Responds to a request with a method that the resource has.
    func respond(to request: LocalRequest, _ resource: AdminResource) async -> LocalResponse {
        do throws(SessionError) {
            switch resource {
            case .sessions: return try await list(request)
            case .session(let id):
                let subject = Self.subject(of: request)
                // Without any, every session is searched: not for one that was meant, and was not understood.
                guard subject != nil || request.query.isEmpty else { return Self.invalid(request) }
                return Self.ended(try await sessions.end(id, of: subject), request)
            case .sessionsOf(let subject):
                return Self.ended(try await sessions.endAll(of: subject), request)
            default: return AdminProblem.notFound.response(request.requestID)
            }
        } catch {
            let reason = (error.cause as? AccountError)?.message ?? "the store is unavailable"
            return AdminProblem.outage(error.code, reason).response(request.requestID)
        }
    }

    private func list(_ request: LocalRequest) async throws(SessionError) -> LocalResponse {
        guard let subject = Self.subject(of: request) else { return Self.invalid(request) }
        return .admin(.array(try await sessions.entries(of: subject).map { .object($0) }))
    }

    private static func invalid(_ request: LocalRequest) -> LocalResponse {
        AdminProblem.invalid("the query must have the parameter subject, once").response(request.requestID)
    }

    /// The subject of the query; `nil` if there is none, or several.
    private static func subject(of request: LocalRequest) -> String? {
        var decoder = FormDecoder(Array(request.query.utf8))
        guard let pairs = try? decoder.pairs() else { return nil }
        let subjects = pairs.filter { String(decoding: $0.name, as: UTF8.self) == "subject" }
        guard subjects.count == 1, let value = subjects.first?.value else { return nil }
        let subject = value.withBytes { String(decoding: $0, as: UTF8.self) }
        return subject.isEmpty ? nil : subject
    }

    private static func ended(_ isKnown: Bool, _ request: LocalRequest) -> LocalResponse {
        isKnown ? .adminDone : AdminProblem.notFound.response(request.requestID)
    }
}

extension AdminProblem {
    /// Why operators get 503 instead of what they asked for.
    static func outage(_ code: ErrorCode, _ message: String) -> AdminProblem {
        var problem = unavailable(message)
        problem.members["reason"] = .string(code.rawValue)
        return problem
    }
}

extension LocalResponse {
    /// A document for operators, which no cache may keep.
    static func admin(_ document: JSONValue) -> LocalResponse {
        LocalResponse(
            status: 200, fields: [("Content-Type", "application/json"), ("Cache-Control", "no-store")],
            body: JSON.write(document) + [0x0A])
    }

    /// 204.
    static let adminDone = LocalResponse(status: 204, fields: [("Cache-Control", "no-store")], body: [])
}
