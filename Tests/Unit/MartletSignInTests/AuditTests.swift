import MartletAudit
import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletResponder
import MartletTesting
import Testing

@testable import MartletSignIn

/// Keeps events.
private final class EventList: AuditRecording {
    private let events = Box<[AuditEvent]>([])

    func record(_ event: AuditEvent) { events.withLock { $0.append(event) } }

    /// What has come since the last time: `login success usr_1 apple`.
    func take() -> [String] {
        events.withLock { events in
            let texts = events.map { event in
                let members = ["event", "outcome", "subject", "provider", "detail", "reason"]
                return members.compactMap { event.members[$0]?.string }.joined(separator: " ")
            }
            events = []
            return texts
        }
    }
}

@Suite struct `What users do, in the audit log` {
    @Test func `is recorded with whom it is about, and what came of it`() async throws {
        let list = EventList()
        let stand = Stand { $0.audit = list }
        let token = try await stand.login("apple", "anna")
        let subject = try #require(await stand.send("GET", "/auth/session", bearer: token)["subject"])
        #expect(list.take() == ["login success \(subject) apple new_account"])

        stand.password.script.withLock { $0.error = .rejected("stub.no") }
        #expect(await stand.post("/auth/login/password", #"{"proof":"anna"}"#).status == 401)
        #expect(await stand.post("/auth/link/password", bearer: token, #"{"proof":"anna"}"#).status == 401)
        #expect(list.take() == ["login rejected password stub.no", "link rejected \(subject) password stub.no"])
        stand.password.script.withLock { $0.error = nil }

        #expect(await stand.post("/auth/link/password", bearer: token, #"{"proof":"anna"}"#).status == 204)
        #expect(await stand.send("DELETE", "/auth/link/password", bearer: token).status == 204)
        #expect(await stand.send("DELETE", "/auth/link/apple", bearer: token).status == 409)
        let changes = list.take()
        #expect(changes.prefix(2) == ["link success \(subject) password", "unlink success \(subject) password"])
        #expect(changes.last?.hasPrefix("unlink rejected \(subject) apple") == true, "\(changes)")

        #expect(await stand.send("POST", "/auth/logout", bearer: token).status == 204)
        #expect(await stand.send("POST", "/auth/logout?all=true", bearer: token).status == 401)
        #expect(list.take() == ["revoke success \(subject) logout", "revoke rejected logout_all session.unknown"])
    }

    @Test(arguments: ["mat_a", "mrt_r"])
    func `is the same for either token that is revoked`(prefix: String) async throws {
        let list = EventList()
        let stand = Stand { $0.audit = list }
        let token = try await stand.login("apple", "anna")
        let subject = try #require(await stand.send("GET", "/auth/session", bearer: token)["subject"])
        _ = list.take()
        let sent = prefix + token.dropFirst(prefix.count)
        #expect(await stand.post("/auth/revoke", #"{"token":"\#(sent)"}"#).status == 200)
        #expect(list.take() == ["revoke success \(subject) token"])
    }

    @Test func `is not recorded where nothing is decided`() async throws {
        let list = EventList()
        let stand = Stand { $0.audit = list }
        let token = try await stand.login("apple", "anna")
        _ = list.take()
        _ = await stand.send("GET", "/auth/session", bearer: token)
        _ = await stand.send("GET", "/auth/sessions", bearer: token)
        _ = await stand.post("/auth/login/apple", "{}")
        _ = await stand.post("/auth/revoke", #"{"token":"mat_unknown"}"#)
        stand.sessions.callsLeft = 0
        _ = await stand.send("POST", "/auth/logout", bearer: token)
        #expect(list.take() == [])
    }

    @Test func `names the provider to the access log, too, of a rejected login as well`() async throws {
        let stand = Stand()
        let login = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(login.response.provider == "apple")
        let token = try #require(login["access_token"])
        #expect(await stand.send("GET", "/auth/session", bearer: token).response.provider == "apple")
        let refresh = try #require(login["refresh_token"])
        #expect(await stand.post("/auth/refresh", #"{"refresh_token":"\#(refresh)"}"#).response.provider == "apple")
        stand.password.script.withLock { $0.error = .rejected("stub.no") }
        let rejected = await stand.post("/auth/login/password", #"{"proof":"anna"}"#)
        #expect(rejected.status == 401 && rejected.response.provider == "password")
        #expect(await stand.send("GET", "/auth/session").response.provider == nil)
    }

    @Test func `costs nothing without a log`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        #expect(await stand.send("POST", "/auth/logout", bearer: token).status == 204)
    }
}
