import MartletConfig
import MartletCore
import MartletHTTP
import MartletProvider
import MartletResponder
import Synchronization
import Testing

@testable import MartletAuthenticator

@Suite struct AuthenticatorVerificationTests {
    /// What became of a credential that is not cached.
    private struct Requested {
        var verification: VerificationRequest?
        var rejection: Rejection?
    }

    private func request(
        _ bench: inout AuthenticatorBench, _ form: CredentialForm, _ value: String, on route: String,
        _ credential: inout CredentialState
    ) -> Requested {
        let index = bench.index(route)
        switch bench.authenticator.requestVerification(
            CredentialLocation(form: form, range: .empty, route: index), Array(value.utf8), at: bench.time,
            &credential)
        {
        case .pending(let verification): return Requested(verification: verification)
        case .rejected(let rejection): return Requested(rejection: rejection)
        case .unproven:
            Issue.record("a proof is needed of a credential that was not verified")
            return Requested()
        case .authorized(let request):
            Issue.record("authorized on route \(request.route)")
            return Requested()
        }
    }

    // MARK: Requests

    private static let requests: [(CredentialForm, String, String, Credential.Scheme, String)] = [
        (.session, "required", "mat_1", .bearer, "sessions"), (.direct, "required", "t-1", .bearer, "tokens"),
        (.direct, "two", "o-1", .bearer, "others"), (.basic, "basic", "YTpi", .basic, "passwords"),
        (.direct, "required", "", .bearer, "tokens"),
    ]

    @Test(arguments: requests)
    func `a verification has the credential, its scheme and what verifies it`(
        form: CredentialForm, route: String, value: String, scheme: Credential.Scheme, target: String
    ) throws {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        let requested = request(&bench, form, value, on: route, &credential)
        let verification = try #require(requested.verification)
        let text = verification.credential.withBytes { String(decoding: $0, as: UTF8.self) }
        #expect(verification.form == form && verification.credential.scheme == scheme && text == value)
        #expect(Samples.name(of: verification.target) == target)
        let misses = bench.authenticator.misses
        #expect(misses == 1 && credential.verificationAttempts == 1)
        #expect(credential.verificationStarted == AuthenticatorBench.start.monotonic)
    }

    @Test func `each attempt is counted and has its own time, up to the limit`() {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        var times: [Int64] = []
        for _ in 1...Authenticator.verificationLimit {
            let requested = request(&bench, .direct, "t-1", on: "required", &credential)
            if requested.verification != nil {
                times.append(credential.verificationStarted - AuthenticatorBench.start.monotonic)
            }
            bench.advance(seconds: 2)
        }
        #expect(times == [0, 2_000_000_000, 4_000_000_000, 6_000_000_000])
        let requested = request(&bench, .direct, "t-1", on: "required", &credential)
        let misses = bench.authenticator.misses
        #expect(requested.rejection?.failure.reason == "auth.verdict_overtaken" && requested.verification == nil)
        #expect(misses == 5 && credential.verificationAttempts == 5)
        #expect(credential.verificationStarted - AuthenticatorBench.start.monotonic == 6_000_000_000)
    }

    @Test func `the limit holds for each request by itself`() {
        var bench = AuthenticatorBench()
        for _ in 0..<10 {
            var credential = CredentialState()
            let requested = request(&bench, .direct, "t-1", on: "required", &credential)
            #expect(requested.verification != nil && credential.verificationAttempts == 1)
        }
        let misses = bench.authenticator.misses
        #expect(misses == 10)
    }

    private static let unclaimed: [(CredentialForm, String)] = [
        (.direct, "two"), (.direct, "passwords"), (.basic, "required"), (.direct, "none"),
    ]

    @Test(arguments: unclaimed)
    func `a credential that no provider claims is invalid`(form: CredentialForm, route: String) {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        let requested = request(&bench, form, "x-1", on: route, &credential)
        let failure = requested.rejection?.failure
        let misses = bench.authenticator.misses
        #expect(failure?.status == 401 && failure?.reason == "auth.no_provider_claims_it" && misses == 1)
        #expect(credential.verificationStarted == 0 && credential.verificationAttempts == 1)
    }

    @Test func `results that are overtaken too often are an outage, which can be retried`() {
        var found: Rejection?
        switch Authenticator.overtaken() {
        case .rejected(let rejection): found = rejection
        default: break
        }
        let failure = found?.failure
        #expect(failure?.status == 503 && failure?.reason == "auth.verdict_overtaken" && failure?.retryAfter == 1)
        let code = failure.map { "\($0.code)" }
        #expect(code == "auth_unavailable" && failure?.challengeText == nil)
    }

    // MARK: Throttled clients

    /// Throttles one client.
    private struct Throttled: Throttling {
        typealias Configuration = VerifierTests.Trusting.Nothing

        static let kind: ProviderKind = "throttled"
        static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
        init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}
        init() {}

        var accepts: [CredentialSource] { [.basic] }

        func rejection(of client: ClientNetwork) -> AuthenticationError? {
            guard client == AuthenticatorVerificationTests.client(7) else { return nil }
            return .throttled("throttled.address", retryAfter: .seconds(7))
        }

        func authenticate(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> Identity { throw .rejected("throttled.not_called") }
    }

    private static func client(_ number: UInt8) -> ClientNetwork? {
        ClientNetwork(address: Array(repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, number])
    }

    private static let clients: [(ClientNetwork?, Bool)] = [(client(7), true), (client(8), false), (nil, false)]

    @Test(arguments: clients)
    func `a credential of a throttled client is rejected without a verification`(
        client: ClientNetwork?, isRejected: Bool
    ) {
        let location = CredentialLocation(form: .basic, range: ByteRange(from: 2, to: 6), route: 5)
        let request = VerificationRequest(
            location, credential: Credential(basic: Array("YTpi".utf8)),
            target: .provider(ProviderHandle(Throttled(), name: "t")))
        let rejection = request.rejection(of: client)
        #expect((rejection != nil) == isRejected)
        guard let rejection else { return }
        let failure = rejection.failure
        #expect(failure.status == 429 && failure.reason == "throttled.address" && failure.retryAfter == 7)
        guard case .verification(let error, let found) = rejection.cause else {
            Issue.record("the cause is not a verification")
            return
        }
        #expect(error.code == "throttled.address" && found.form == .basic && found.route == 5)
        #expect(found.range == location.range)
    }

    @Test func `each credential is verified where no client is throttled`() {
        let location = CredentialLocation(form: .direct, range: .empty, route: 0)
        let targets: [Verifier.Target] = [
            .provider(ProviderHandle(VerifierTests.Trusting(), name: "t")), .sessions(AuthenticatorBench.Sessions()),
        ]
        for target in targets {
            let request = VerificationRequest(location, credential: Credential(bearer: [0x78]), target: target)
            #expect(request.rejection(of: Self.client(7)) == nil)
        }
    }

    // MARK: On the loop

    private let results = RecordedResults()

    private func job(_ text: String, _ number: UInt64, isQuick: Bool = true) -> Verifier.Job {
        job(text, number, .provider(ProviderHandle(VerifierTests.Trusting(isQuick: isQuick), name: "t")))
    }

    private func job(_ text: String, _ number: UInt64, _ target: Verifier.Target) -> Verifier.Job {
        Verifier.Job(
            credential: Credential(bearer: Array(text.utf8)), target: target, subjects: nil,
            context: AuthenticationContext(now: UnixTime(seconds: 1), deadline: .never), sink: results,
            exchange: ExchangeID(raw: number), epoch: 0)
    }

    /// A clock by which a time budget is used up with every verification.
    private func clock() -> Clock {
        let time = Mutex<Int64>(0)
        return Clock(
            unixTime: { UnixTime(seconds: 1) },
            monotonicTime: {
                MonotonicTime(
                    nanoseconds: time.withLock {
                        $0 += InlineVerifier.passTime
                        return $0
                    })
            })
    }

    @Test func `the loop is idle again when all its jobs are verified`() {
        var authenticator = Authenticator(AuthenticatorBench.rules())
        let clock = clock()
        var idle = [authenticator.isIdle]
        let queued = [authenticator.enqueue(job("ada", 1)), authenticator.enqueue(job("bad", 2))]
        idle.append(authenticator.isIdle)
        var verified: [[UInt64]] = []
        for _ in 0..<3 {
            let finished = authenticator.verifyInline(by: clock) { _, _ in Issue.record("passed on") }
            verified.append(finished.map(\.job.exchange.raw))
            idle.append(authenticator.isIdle)
        }
        #expect(queued == [true, true] && idle == [true, false, false, true, true])
        #expect(verified == [[], [1, 2], []])
    }

    @Test func `a job that was passed on is no longer the loop's`() {
        var authenticator = Authenticator(AuthenticatorBench.rules())
        let isQueued = authenticator.enqueue(job("later", 1))
        var others: [UInt64] = []
        let finished = authenticator.verifyInline(by: clock()) { job, _ in others.append(job.exchange.raw) }
        let isIdle = authenticator.isIdle
        #expect(isQueued && finished.isEmpty && others == [1] && isIdle)
    }

    @Test func `a job for the threads leaves the loop idle`() {
        var authenticator = Authenticator(AuthenticatorBench.rules())
        let queued = [
            authenticator.enqueue(job("ada", 1, isQuick: false)),
            authenticator.enqueue(job("mat_1", 2, .sessions(AuthenticatorBench.Sessions()))),
        ]
        let isIdle = authenticator.isIdle
        #expect(queued == [false, false] && isIdle && results.drain().isEmpty)
    }

    @Test func `the loop is busy while its queue is full`() {
        var authenticator = Authenticator(AuthenticatorBench.rules())
        var queued = 0
        for number in 0..<InlineVerifier.limit + 5 where authenticator.enqueue(job("ada", UInt64(number))) {
            queued += 1
        }
        let isIdle = authenticator.isIdle
        #expect(queued == InlineVerifier.limit && !isIdle)
    }
}
