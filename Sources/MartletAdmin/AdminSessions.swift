package import MartletCore
package import MartletJSON
internal import MartletResponder

/// Why operators get 503 instead of what they asked for.
package struct AdminOutage: Error {
    package let code: ErrorCode
    /// One line for the operator.
    package let message: String

    package init(_ code: ErrorCode, _ message: String) {
        self.code = code
        self.message = message
    }
}

/// The sessions of subjects, as the admin listener shows and ends them.
package protocol SessionAdministering: Sendable {
    /// The live sessions of a subject, newest first; empty for an unknown subject.
    func sessions(of subject: String) async throws(AdminOutage) -> [JSONObject]
    /// Ends one session; returns when this instance rejects it and the others have been notified.
    /// - Parameter subject: whose it is; `nil` if that is not known.
    /// - Returns: `false` without such a session.
    func endSession(_ id: String, of subject: String?) async throws(AdminOutage) -> Bool
    /// Ends all sessions of a subject.
    /// - Returns: `false` for a subject that is unknown.
    func endSessions(of subject: String) async throws(AdminOutage) -> Bool
}

/// `/sessions`: GET lists the sessions of a subject; DELETE of `/sessions/{id}` ends one, of
/// `/subjects/{subject}/sessions` all of a subject.
struct AdminSessions {
    private let administration: any SessionAdministering

    init(_ administration: any SessionAdministering) { self.administration = administration }

    /// Responds to a request with a method that the resource has.
    func respond(to request: LocalRequest, _ resource: AdminResource) async -> LocalResponse {
        do throws(AdminOutage) {
            switch resource {
            case .sessions: return try await list(request)
            case .session(let id):
                let subject = Self.subject(of: request)
                // Without any, every session is searched: not for one that was meant, and was not understood.
                guard subject != nil || request.query.isEmpty else { return Self.invalid(request) }
                return Self.ended(try await administration.endSession(id, of: subject), request)
            case .sessionsOf(let subject):
                return Self.ended(try await administration.endSessions(of: subject), request)
            default: return AdminProblem.notFound.response(request.requestID)
            }
        } catch {
            return error.response(request)
        }
    }

    private func list(_ request: LocalRequest) async throws(AdminOutage) -> LocalResponse {
        guard let subject = Self.subject(of: request) else { return Self.invalid(request) }
        let sessions = try await administration.sessions(of: subject)
        return .admin(.array(sessions.map { .object($0) }))
    }

    private static func invalid(_ request: LocalRequest) -> LocalResponse {
        AdminProblem(status: 400, code: "request_invalid", allow: nil)
            .response(request.requestID, with: ["detail": "the query must have the parameter subject, once"])
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

extension AdminOutage {
    func response(_ request: LocalRequest) -> LocalResponse {
        AdminProblem(status: 503, code: "auth_unavailable", allow: nil)
            .response(
                request.requestID, with: ["detail": .string(message), "reason": .string(code.rawValue)])
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
