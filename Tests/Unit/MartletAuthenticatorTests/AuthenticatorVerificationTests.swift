import MartletCore
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
            form, Array(value.utf8), route: index, at: bench.time, &credential)
        {
        case .pending(let verification): return Requested(verification: verification)
        case .rejected(let rejection): return Requested(rejection: rejection)
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
            let finished = authenticator.verifyInline(by: clock) { _ in Issue.record("passed on") }
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
        let finished = authenticator.verifyInline(by: clock()) { others.append($0.exchange.raw) }
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
