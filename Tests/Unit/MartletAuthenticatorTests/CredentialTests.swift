import MartletCore
import MartletHTTP
import MartletProvider
import Testing

@testable import MartletAuthenticator

@Suite struct CredentialFormTests {
    @Test(arguments: [0, 1, 7, 0x7FFF_FFFF] as [UInt32])
    func `names and passwords are apart from tokens in every scope`(number: UInt32) {
        #expect(CredentialForm.session.scope(number) == number && CredentialForm.direct.scope(number) == number)
        #expect(CredentialForm.basic.scope(number) == 0x8000_0000 + number)
    }

    @Test func `every form has scopes of its own, for each header`() {
        let forms: [CredentialForm] = [
            .direct, .basic, .cookie, .header(source: 0), .header(source: 1), .header(source: 255),
        ]
        let scopes = forms.flatMap { form in [0, 1, 0xF_FFFF].map { form.scope($0) } }
        #expect(Set(scopes).count == scopes.count)
    }

    @Test(arguments: [
        ("mat_", true), ("mrt_", true), ("mat_x", true), ("mrt_\u{0}", true), ("", false), ("m", false), ("mat", false),
        ("Mat_", false), ("mAt_", false), ("maT_", false), ("mat-", false), ("mbt_", false), ("nat_", false),
        ("mrs_", false), (" mat_", false),
    ])
    func `the gateway's own tokens have one of two prefixes`(token: String, expected: Bool) {
        let bytes = Array(token.utf8)
        let matches = unsafe bytes.withUnsafeBufferPointer { unsafe SessionPrefix.begins($0) }
        #expect(matches == expected)
    }
}

@Suite struct PresentedCredentialTests {
    /// A credential that has to be verified.
    private struct Pending {
        let form: CredentialForm
        let scheme: Credential.Scheme
        let value: String
        let target: String?
    }

    /// The credential that has to be verified for a value of `Authorization`.
    private func pending(_ route: String, _ authorization: String) -> Pending? {
        var bench = AuthenticatorBench()
        let bytes = Array("\(authorization)\r\n".utf8)
        let range = ByteRange(start: 0, count: authorization.utf8.count)
        let index = bench.index(route)
        var credential = CredentialState()
        return unsafe bytes.withUnsafeBufferPointer { bytes -> Pending? in
            guard let routed = RoutedRequest(exchange: AuthenticatorBench.exchange, route: index, mount: -1) else {
                return nil
            }
            switch unsafe bench.authenticator.authorize(
                routed, bytes, authorization: range, result: nil, at: AuthenticatorBench.start, &credential)
            {
            case .pending(let request):
                return Pending(
                    form: request.form, scheme: request.credential.scheme,
                    value: request.credential.withBytes { String(decoding: $0, as: UTF8.self) },
                    target: Samples.name(of: request.target))
            default: return nil
            }
        }
    }

    private static let credentials: [(String, String, CredentialForm, Credential.Scheme, String, String)] = [
        ("required", "Bearer t-1", .direct, .bearer, "t-1", "tokens"),
        ("required", "bEARER    t-1==", .direct, .bearer, "t-1==", "tokens"),
        ("required", "Bearer mat_1", .session, .bearer, "mat_1", "sessions"),
        ("required", "Bearer mrt_1", .session, .bearer, "mrt_1", "sessions"),
        // Never the digest under which it is cached.
        ("basic", "Basic YTpi", .basic, .basic, "YTpi", "passwords"),
        ("basic", "basic  YTpiYw==", .basic, .basic, "YTpiYw==", "passwords"),
        // A name and password is never a token of the gateway's own.
        ("basic", "Basic mat_", .basic, .basic, "mat_", "passwords"),
    ]

    @Test(arguments: credentials)
    func `a verifier gets the credential as it was presented, without its scheme`(
        route: String, authorization: String, form: CredentialForm, scheme: Credential.Scheme, value: String,
        target: String
    ) {
        let found = pending(route, authorization)
        #expect(found?.form == form && found?.scheme == scheme && found?.value == value && found?.target == target)
    }
}

@Suite struct CredentialStateTests {
    @Test func `begins without a credential`() {
        let state = CredentialState()
        #expect(state.provider == -1 && state.decision == -1 && state.revocationID == 0 && state.end == .max)
        #expect(state.expiryGrace == 0 && state.verificationStarted == 0 && state.verificationAttempts == 0)
        #expect(!state.offersBasic && !state.retainsToken)
    }

    @Test(arguments: [0, 1, .max] as [Int64])
    func `is bound to a credential with a grace period, zero included`(grace: Int64) {
        var state = CredentialState()
        state.bind(to: 7, until: 1_500, decision: 3, grace: grace)
        #expect(state.revocationID == 7 && state.end == 1_500 && state.decision == 3 && state.expiryGrace == grace)
        #expect(state.provider == -1 && !state.retainsToken)
    }

    @Test(arguments: [-1, .min] as [Int64])
    func `is not bound where an exchange may outlive its credential`(grace: Int64) {
        var state = CredentialState()
        state.bind(to: 7, until: 1_500, decision: 3, grace: grace)
        #expect(state.revocationID == 0 && state.end == .max && state.decision == -1 && state.expiryGrace == 0)
    }
}

@Suite struct RoutedRequestTests {
    /// The exchange and the route of a request, if there is one.
    private func routed(mount: Int) -> (exchange: ExchangeID, route: Int)? {
        guard let request = RoutedRequest(exchange: ExchangeID(raw: 5), route: 2, mount: mount) else { return nil }
        return (request.exchange, request.route)
    }

    @Test(arguments: [-1, -2, .min] as [Int])
    func `a route to an upstream is authorized`(mount: Int) {
        let request = routed(mount: mount)
        #expect(request?.exchange == ExchangeID(raw: 5) && request?.route == 2)
    }

    @Test(arguments: [0, 1, .max] as [Int])
    func `a mount has no request to authorize`(mount: Int) {
        let hasRequest = routed(mount: mount) != nil
        #expect(!hasRequest)
    }
}

@Suite struct LoopTimeTests {
    @Test(arguments: [0, -1, 784_111_777, .max] as [Int64])
    func `the wall clock is in seconds`(seconds: Int64) {
        let time = LoopTime(monotonic: 5, unix: seconds)
        #expect(time.unixTime == UnixTime(seconds: seconds) && time.unix == seconds && time.monotonic == 5)
    }
}
