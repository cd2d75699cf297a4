import MartletCore
import MartletJSON
import MartletProvider
import MartletResponder
import MartletTesting
import Testing

@testable import MartletAccounts
@testable import MartletAdmin

/// One account, and a record of what it is asked to do.
private final class OneSubject: SubjectAdministering {
    let calls = Box<[String]>([])
    let disabledAt = Box<UnixTime?>(nil)
    let identities: [SubjectReport.Identity]
    let sessions: Int?

    init(_ identities: [SubjectReport.Identity] = [], sessions: Int? = 2) {
        self.identities = identities
        self.sessions = sessions
    }

    private func isKnown(_ subject: String, _ call: String) -> Bool {
        calls.withLock { $0.append("\(call) \(subject)") }
        return subject == "usr_1"
    }

    func report(on subject: String) async throws(AdminOutage) -> SubjectReport? {
        guard isKnown(subject, "show") else { return nil }
        let account = AccountRecord(
            subject: "usr_1", createdAt: UnixTime(seconds: 1), disabledAt: disabledAt.value,
            storedClaims: ["name": "Ann"], claims: ["role": "staff"], profile: ["locale": "en"])
        return SubjectReport(account: account, identities: identities, sessions: sessions)
    }

    func setDisabled(_ subject: String, _ isDisabled: Bool) async throws(AdminOutage) -> Bool {
        guard isKnown(subject, isDisabled ? "disable" : "enable") else { return false }
        disabledAt.withLock { $0 = isDisabled ? UnixTime(seconds: 9) : nil }
        return true
    }

    func delete(_ subject: String) async throws(AdminOutage) -> Bool { isKnown(subject, "delete") }
}

@Suite struct AdminSubjectsTests {
    private func respond(
        _ method: String, _ path: String, by subjects: OneSubject?
    ) async throws -> LocalResponse {
        let resource = try #require(AdminResource(path: path))
        #expect(resource.methods.contains(method))
        return await AdminSubjects(subjects).respond(to: adminRequest(method, path), resource)
    }

    @Test func `paths name a subject and what is to be done`() {
        #expect(AdminResource(path: "/subjects/a%3Ab") == .subject("a:b"))
        #expect(AdminResource(path: "/subjects/a/disable") == .disable(subject: "a"))
        #expect(AdminResource(path: "/subjects/a/enable") == .enable(subject: "a"))
        for path in ["/subjects", "/subjects/", "/subjects/a/", "/subjects/a/disable/b", "/subjects/%g0"] {
            #expect(AdminResource(path: path) == nil, "\(path)")
        }
        #expect(AdminResource.subject("a").methods == ["GET", "HEAD", "DELETE"])
        for resource in [AdminResource.disable(subject: "a"), .enable(subject: "a")] {
            #expect(resource.methods == ["POST"] && resource.need("POST") == .change)
        }
        #expect(AdminResource.subject("a").need("DELETE") == .change)
    }

    @Test func `shows the account with its identities, and names the resource of its claims`() async throws {
        let apple = SubjectReport.Identity(
            provider: "apple", subjects: ["001", "002"],
            times: LinkedIdentity(
                provider: "apple", linkedAt: UnixTime(seconds: 2), lastLoginAt: UnixTime(seconds: 3)),
            status: IdentityStatus(
                provider: "apple", state: .authorized, checkedAt: UnixTime(seconds: 4), hasGrant: true),
            isEmailVerified: true, lock: nil)
        let password = SubjectReport.Identity(
            provider: "password", subjects: ["ann"], times: nil, status: nil, isEmailVerified: nil,
            lock: .throttled(UserThrottling(remaining: .seconds(60), knownNetworks: 1)))
        let quiet = SubjectReport.Identity(
            provider: "other", subjects: ["ann"], times: nil, status: nil, isEmailVerified: nil, lock: .open)
        let shown = try await respond("GET", "/subjects/usr_1", by: OneSubject([apple, password, quiet]))
        let identities = [
            #"{"provider":"apple","subject":"001","aliases":["002"],"linked_at":2,"last_login_at":3,"#
                + #""credential_state":"authorized","checked_at":4,"grant":true,"email_verified":true}"#,
            #"{"provider":"password","subject":"ann","aliases":[],"linked_at":null,"last_login_at":null,"#
                + #""credential_state":"unknown","checked_at":null,"grant":false,"#
                + #""lock":{"seconds":60,"known_networks":1}}"#,
            #"{"provider":"other","subject":"ann","aliases":[],"linked_at":null,"last_login_at":null,"#
                + #""credential_state":"unknown","checked_at":null,"grant":false,"lock":null}"#,
        ]
        #expect(shown.status == 200)
        #expect(
            shown.text
                == #"{"subject":"usr_1","state":"active","created_at":1,"disabled":false,"disabled_at":null,"#
                + #""deletion":null,"identities":["# + identities.joined(separator: ",")
                + #"],"claims":"/subjects/usr_1/claims","stored_claims":{"name":"Ann"},"profile":{"locale":"en"},"#
                + #""sessions":2}"#)
        let away = try await respond("GET", "/subjects/usr_1", by: OneSubject(sessions: nil))
        #expect(away.text.hasSuffix(#""sessions":null}"#))
    }

    @Test func `disables, enables and deletes; 404 for an unknown subject, and without accounts`() async throws {
        let subjects = OneSubject()
        let disabled = try await respond("POST", "/subjects/usr_1/disable", by: subjects)
        #expect(disabled.status == 200 && disabled.text.contains(#""state":"disabled""#))
        #expect(disabled.text.contains(#""disabled":true,"disabled_at":9"#))
        let enabled = try await respond("POST", "/subjects/usr_1/enable", by: subjects)
        #expect(enabled.status == 200 && enabled.text.contains(#""state":"active""#))
        #expect(try await respond("DELETE", "/subjects/usr_1", by: subjects).status == 204)
        #expect(
            subjects.calls.value
                == ["disable usr_1", "show usr_1", "enable usr_1", "show usr_1", "delete usr_1"])
        for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "/disable"), ("POST", "/enable")] {
            #expect(try await respond(method, "/subjects/usr_2\(path)", by: subjects).outcome == "404 not_found")
            #expect(try await respond(method, "/subjects/usr_1\(path)", by: nil).outcome == "404 not_found")
        }
    }
}
