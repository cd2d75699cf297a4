import MartletCore
import MartletHTTP
import MartletProvider
import MartletResponder
import Testing

@testable import MartletAuthenticator

@Suite struct AuthorizationOutcomeTests {
    /// What a rejection is based on, in a form that tests can compare.
    private enum Basis: Equatable {
        case request
        case verification(ErrorCode)
        case policy
    }

    private func basis(_ rejection: Rejection?) -> Basis? {
        switch rejection?.cause {
        case .request?: .request
        case .verification(let error, _)?: .verification(error.code)
        case .policy?: .policy
        case nil: nil
        }
    }

    @Test func `an authorized request names its exchange, its route, and whether a credential was consumed`() {
        var authenticator = Authenticator(AuthenticatorBench.rules())
        var credential = CredentialState()
        let bytes = Array("\r\n".utf8)
        // The routes "none" and "optional".
        for route in 0...1 {
            let found = unsafe bytes.withUnsafeBufferPointer { bytes -> (ExchangeID, Int32, Bool)? in
                guard let routed = RoutedRequest(exchange: ExchangeID(raw: 9), route: route, mount: -1) else {
                    return nil
                }
                switch unsafe authenticator.authorize(
                    routed, bytes, authorization: nil, result: nil, at: AuthenticatorBench.start, &credential)
                {
                case .authorized(let request): return (request.exchange, request.route, request.consumedCredential)
                default: return nil
                }
            }
            #expect(found?.0 == ExchangeID(raw: 9) && found?.1 == Int32(route) && found?.2 == false)
        }
    }

    @Test func `a rejection is based on the request unless it says otherwise`() {
        let plain = Rejection(.credentialMissing)
        #expect(basis(plain) == .request && plain.failure.status == 401)
        let denied = Rejection(.notAllowed("test.reason"), .policy)
        #expect(basis(denied) == .policy && denied.failure.status == 403 && denied.failure.reason == "test.reason")
    }

    private static let unfit: [(String, String?)] = [
        ("required", nil), ("required", "Digest a"), ("required", "Bearer"), ("required", "Basic YTpi"),
        ("sessions", "Bearer t-1"), ("direct", "Bearer mat_1"), ("two", "Bearer x-1"), ("optional admins", nil),
    ]

    @Test(arguments: unfit)
    func `a request or a credential that does not fit its route is rejected as such`(
        route: String, authorization: String?
    ) {
        var bench = AuthenticatorBench()
        _ = bench.decide(route, authorization)
        let rejection = bench.rejection
        #expect(basis(rejection) == .request && rejection?.failure.status == 401)
    }

    @Test func `a session is rejected as a request while its store is unavailable`() {
        var bench = AuthenticatorBench()
        bench.authenticator.rejectSessions(true)
        _ = bench.decide("required", AdmissionCase.session)
        let rejection = bench.rejection
        #expect(basis(rejection) == .request && rejection?.failure.status == 503)
    }

    @Test func `a caller who may not use the route is rejected by its policy, cached or not`() {
        var bench = AuthenticatorBench()
        let user = AuthenticatorBench.verified(role: "user")
        for attempt in 1...2 {
            _ = bench.decide("admins", AdmissionCase.token, result: attempt == 1 ? user : nil)
            let rejection = bench.rejection
            #expect(basis(rejection) == .policy && rejection?.failure.status == 403)
        }
    }

    private static let failed: [(String, String, CredentialForm, ByteRange)] = [
        ("required", "Bearer t-1", .direct, ByteRange(start: 22, count: 3)),
        ("required", "bearer   t-1=", .direct, ByteRange(start: 24, count: 4)),
        ("required", "Bearer mat_1", .session, ByteRange(start: 22, count: 5)),
        ("basic", "Basic YTpi", .basic, ByteRange(start: 21, count: 4)),
        ("basic", "BASIC  YTpiYw==", .basic, ByteRange(start: 22, count: 8)),
    ]

    /// The value begins at offset 15, behind the name of the field.
    @Test(arguments: failed)
    func `a failed verification says where in the head the credential is`(
        route: String, authorization: String, form: CredentialForm, range: ByteRange
    ) {
        var bench = AuthenticatorBench()
        let decided = bench.decide(route, authorization, result: .failure(.rejected("sample.invalid")))
        let (rejection, index) = (bench.rejection, bench.index(route))
        guard case .verification(let error, let credential)? = rejection?.cause else {
            Issue.record("another cause")
            return
        }
        #expect(decided == .rejected(401, "sample.invalid") && error.code == "sample.invalid")
        #expect(credential.form == form && credential.range == range && credential.route == index)
    }

    @Test func `the seconds until a retry are those of the provider`() {
        var bench = AuthenticatorBench()
        let error = AuthenticationError.throttled("sample.many", retryAfter: .seconds(30))
        let decided = bench.decide("required", AdmissionCase.token, result: .failure(error))
        let rejection = bench.rejection
        #expect(decided == .rejected(429, "sample.many") && rejection?.failure.retryAfter == 30)
        #expect(basis(rejection) == .verification("sample.many"))
    }
}
