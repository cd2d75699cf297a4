import MartletCore
import MartletIO
import MartletIdentities
import MartletJSON
import MartletResponder
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

@testable import MartletAdmin

/// A request on a loopback connection.
func adminRequest(
    _ method: String, _ path: String, query: String = "", fields: [(name: String, value: String)] = [],
    local: String = "127.0.0.1"
) -> LocalRequest {
    LocalRequest(
        method: method, path: path, query: query, fields: fields, body: [], bodyBytes: 0, client: "127.0.0.1",
        requestID: "r1", local: SocketEndpoint(literal: local, port: 9901))
}

extension LocalResponse {
    /// The body, without the final newline.
    var text: String { String(decoding: body.dropLast(), as: UTF8.self) }
    /// The status, and the code of a problem.
    var outcome: String {
        let limits = JSONLimits(maximumDepth: 4, maximumBytes: 1 << 16)
        let code = (try? JSON.parse(body, limits: limits))?.object?["code"]?.string
        return code.map { "\(status) \($0)" } ?? "\(status)"
    }
}

@Suite struct AdminSessionsTests {
    private func respond(
        _ method: String, _ path: String, _ query: String = "", by sessions: RecordedSessions
    ) async throws -> LocalResponse {
        let resource = try #require(AdminResource(path: path))
        #expect(resource.methods.contains(method))
        let fence = LoginFence(store: MemoryStore(clock: .system), keyPrefix: "test:")
        let operators = OperatorSessions(
            AccountSessions(sessions, fence: fence, providers: ["apple"]) { _ in }, life: nil, accounts: nil,
            logger: .silent)
        return await AdminSessions(operators).respond(to: adminRequest(method, path, query: query), resource)
    }

    @Test(arguments: [
        ("/sessions", AdminResource.sessions), ("/sessions/ses_1", .session("ses_1")),
        ("/subjects/usr_1/sessions", .sessionsOf(subject: "usr_1")),
        ("/subjects/oidc%3aa%7Cb/sessions", .sessionsOf(subject: "oidc:a|b")),
    ])
    func `paths name the list, a session, or all of a subject`(_ path: String, _ resource: AdminResource) {
        #expect(AdminResource(path: path) == resource)
        #expect(resource.need("DELETE") == .change && resource.need("GET") == .reading)
    }

    @Test(arguments: [
        "/sessions/", "/sessions/a/b", "/subjects//sessions", "/subjects/a/sessions/b", "/subjects/%zz/sessions",
        "/subjects/%2/sessions", "/subjects/%ff/sessions", "/session",
    ])
    func `other paths are none`(_ path: String) { #expect(AdminResource(path: path) == nil) }

    @Test func `lists the sessions of the subject of the query`() async throws {
        let sessions = RecordedSessions(["ses_2", "ses_1"])
        let listed = try await respond("GET", "/sessions", "x=1&subject=oidc%3Aa+b", by: sessions)
        let entries = ["ses_2", "ses_1"].map {
            #"{"session_id":"\#($0)","provider":"apple","created_at":1,"last_seen_at":1,"expires_at":1}"#
        }
        #expect(listed.status == 200 && listed.text == "[\(entries.joined(separator: ","))]")
        #expect(listed.fields.contains { $0 == ("Cache-Control", "no-store") })
        #expect(sessions.listed.value == ["oidc:a b"])
        #expect(try await respond("GET", "/sessions", "subject=z", by: RecordedSessions()).text == "[]")
        for query in ["", "subject=", "subject", "subjects=x", "subject=%z1", "subject=a&subject=b"] {
            let outcome = try await respond("GET", "/sessions", query, by: sessions).outcome
            #expect(outcome == "400 request_invalid", "\(query)")
        }
    }

    @Test func `ends one session, or all of a subject; 404 where there is none`() async throws {
        let sessions = RecordedSessions(["ses_1"])
        let one = try await respond("DELETE", "/sessions/ses_1", by: sessions)
        #expect(one.status == 204 && one.body.isEmpty)
        #expect(try await respond("DELETE", "/sessions/ses_1", "subject=usr_1", by: sessions).status == 204)
        #expect(try await respond("DELETE", "/subjects/usr_1/sessions", by: sessions).status == 204)
        #expect(sessions.ended.value == ["ses_1 of anyone", "ses_1 of usr_1", "all of usr_1"])
        for query in ["subject=", "subject=%z1", "subjct=usr_1"] {
            let rejected = try await respond("DELETE", "/sessions/ses_1", query, by: sessions)
            #expect(rejected.outcome == "400 request_invalid", "\(query)")
        }
        #expect(sessions.ended.value.count == 3)
        for path in ["/sessions/ses_1", "/subjects/usr_1/sessions"] {
            let none = RecordedSessions()
            #expect(try await respond("DELETE", path, by: none).outcome == "404 not_found")
        }
    }

    @Test func `without the store it is 503, with the reason`() async throws {
        let away = RecordedSessions(outage: SessionError("session.store_unavailable", .unavailable))
        for (method, path) in [("GET", "/sessions"), ("DELETE", "/sessions/x"), ("DELETE", "/subjects/x/sessions")] {
            let response = try await respond(method, path, "subject=x", by: away)
            #expect(response.outcome == "503 auth_unavailable")
            let members = #""detail":"the store is unavailable","reason":"session.store_unavailable""#
            #expect(response.text.contains(members))
        }
    }

    @Test func `each has its methods`() {
        #expect(AdminResource.sessions.methods == ["GET", "HEAD"])
        #expect(AdminResource.session("x").methods == ["DELETE"])
        #expect(AdminResource.sessionsOf(subject: "x").methods == ["DELETE"])
    }
}
