import MartletCore
import MartletHTTP
import MartletProvider
import MartletResponder
import Testing

@testable import MartletAuthenticator

/// The session cookie as a credential.
@Suite struct AuthenticatorCookieTests {
    @Test(arguments: [
        ("optional", Decided.pending(by: "sessions")), ("required", .pending(by: "sessions")),
        ("sessions", .pending(by: "sessions")), ("admins", .pending(by: "sessions")),
        ("direct", .rejected(401, "auth.sessions_not_accepted")), ("none", .authorized(consumesCredential: false)),
    ])
    func `is verified by the session store where the route accepts sessions`(route: String, expected: Decided) {
        // A value that looks like a provider's token is still a cookie.
        for value in ["mct_1", "t-1", "mat_1", "x"] {
            var bench = AuthenticatorBench()
            if route == "none" {
                #expect(bench.decide(route, nil) == expected)
            } else {
                #expect(bench.decide(route, cookie: value) == expected)
            }
        }
        var bench = AuthenticatorBench(hasSessions: false)
        #expect(bench.decide("required", cookie: "mct_1") == .rejected(401, "auth.sessions_not_accepted"))
    }

    @Test func `is presented to the store as a cookie`() {
        var bench = AuthenticatorBench()
        let name = "Cookie: martlet="
        let bytes = Array("\(name)mct_1".utf8)
        var credential = CredentialState()
        let index = bench.index("required")
        let time = bench.time
        unsafe bytes.withUnsafeBufferPointer { bytes in
            guard let routed = RoutedRequest(exchange: AuthenticatorBench.exchange, route: index, mount: -1) else {
                return
            }
            let outcome = unsafe bench.authenticator.authorize(
                routed, bytes, presenting: .cookie(ByteRange(start: name.utf8.count, count: 5)), for: Samples.facts,
                result: nil, at: time, &credential)
            guard case .pending(let request) = consume outcome else {
                Issue.record("not pending")
                return
            }
            #expect(request.form == .cookie && request.credential.scheme == .cookie)
            #expect(request.credential.withBytes { $0 } == Array("mct_1".utf8))
        }
        #expect(credential.isCookie)
    }

    @Test func `is decided from the cache, apart from bearer tokens of the same bytes`() {
        var bench = AuthenticatorBench()
        let verified = AuthenticatorBench.verified()
        #expect(bench.decide("required", cookie: "mat_1", result: verified) == .authorized(consumesCredential: true))
        #expect(bench.decide("required", cookie: "mat_1") == .authorized(consumesCredential: true))
        let hits = bench.authenticator.hits
        #expect(hits == 1)
        // On other routes, too.
        #expect(bench.decide("admins", cookie: "mat_1") == .authorized(consumesCredential: true))
        #expect(bench.decide("required", "Bearer mat_1") == .pending(by: "sessions"))
        var other = AuthenticatorBench()
        #expect(other.decide("required", "Bearer mat_1", result: verified) == .authorized(consumesCredential: true))
        #expect(other.decide("required", cookie: "mat_1") == .pending(by: "sessions"))
    }

    @Test func `of a caller who is not allowed is denied from the cache, too`() {
        var bench = AuthenticatorBench()
        let verified = AuthenticatorBench.verified(role: "guest")
        let first = bench.decide("admins", cookie: "mct_1", result: verified)
        #expect(bench.decide("admins", cookie: "mct_1") == first)
        let hits = bench.authenticator.hits
        #expect(bench.rejection?.failure.status == 403 && hits == 1)
    }

    @Test func `is retained immediately where its decision is not cached`() {
        // As while the cookie is replaced: the result must not be cached.
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        let now = bench.time.unix
        guard case .success(let verified) = AuthenticatorBench.verified() else { return }
        let once = VerifiedPrincipal(
            principal: verified.principal, revocationID: 7, expires: now, end: (now + 100) * 1_000)
        let decided = bench.decide("required", cookie: "mct_1", &credential, result: .success(once))
        let retained = bench.authenticator.retainsSession(of: AuthenticatorBench.exchange)
        #expect(decided == .authorized(consumesCredential: true) && credential.decision < 0)
        #expect(credential.retainsToken && retained)
        #expect(bench.decide("required", cookie: "mct_1") == .pending(by: "sessions"))
    }

    @Test func `is retained for a long exchange, and verified again as a cookie`() throws {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        _ = bench.decide("required", cookie: "mct_1", &credential, result: AuthenticatorBench.verified())
        // The next request finds the decision.
        credential = CredentialState()
        _ = bench.decide("required", cookie: "mct_1", &credential)
        #expect(credential.decision >= 0)
        bench.authenticator.retainToken(of: AuthenticatorBench.exchange, &credential)
        let isSession = bench.authenticator.retainsSession(of: AuthenticatorBench.exchange)
        #expect(isSession)
        bench.authenticator.revalidate(AuthenticatorBench.exchange, at: 0)
        let due = bench.authenticator.dueRevalidations(at: bench.time)
        let only = try #require(due.first)
        #expect(due.count == 1 && only.credential.scheme == .cookie)
        #expect(only.credential.withBytes { $0 } == Array("mct_1".utf8))
        guard case .sessions = only.target else {
            Issue.record("another target")
            return
        }
    }
}
