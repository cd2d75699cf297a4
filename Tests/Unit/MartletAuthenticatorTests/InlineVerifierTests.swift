import MartletCore
import MartletProvider
import Synchronization
import Testing

@testable import MartletAuthenticator

@Suite struct InlineVerifierTests {
    private struct NoSubjects: SubjectResolving {
        func subject(of identity: Identity, provider: String) async throws(AuthenticationError) -> ResolvedSubject {
            throw .rejected("nobody.found")
        }

        func knownSubject(of identity: Identity, provider: String) async throws(AuthenticationError) -> ResolvedSubject?
        { nil }
    }

    private let sink = RecordedResults()
    private let quick = ProviderHandle(VerifierTests.Trusting(isQuick: true), name: "t")

    private func job(
        _ text: String, _ number: UInt64 = 0, by handle: ProviderHandle? = nil, subjects: (any SubjectResolving)? = nil
    ) -> Verifier.Job {
        Verifier.Job(
            credential: Credential(bearer: Array(text.utf8)), target: .provider(handle ?? quick), subjects: subjects,
            context: AuthenticationContext(now: UnixTime(seconds: 1), deadline: .never), sink: sink,
            exchange: ExchangeID(raw: number), epoch: 2)
    }

    /// A clock that advances by a step whenever it is read.
    private func clock(step: Int64) -> Clock {
        let time = Mutex<Int64>(0)
        return Clock(
            unixTime: { UnixTime(seconds: 1) },
            monotonicTime: {
                MonotonicTime(
                    nanoseconds: time.withLock {
                        $0 += step
                        return $0
                    })
            })
    }

    @Test func `verifies as the threads do, in submission order`() {
        var verifier = InlineVerifier()
        for number in UInt64(0)..<20 {
            #expect(verifier.enqueue(job(number % 7 == 0 ? "bad" : "s\(number)", number)) == true)
        }
        let completed = verifier.run(by: clock(step: 1)) { _, _ in Issue.record("passed on") }
        #expect(completed.map(\.job.exchange.raw) == Array(0..<20))
        for (job, result) in completed {
            let number = job.exchange.raw
            switch result {
            case .success(let verified):
                #expect(verified.principal.subject == "t:s\(number)" && number % 7 != 0)
            case .failure(let error): #expect(error.code == "trusting.bad" && number % 7 == 0)
            }
        }
        #expect(verifier.isIdle)
    }

    @Test func `stops when the time budget is used up, and delivers results in batches`() {
        var verifier = InlineVerifier()
        for number in UInt64(0)..<60 { #expect(verifier.enqueue(job("s", number)) == true) }
        let clock = clock(step: InlineVerifier.passTime / 10)
        var given: [[UInt64]] = []
        while !verifier.isIdle { given.append(verifier.run(by: clock) { _, _ in }.map(\.job.exchange.raw)) }
        #expect(given == [[], [], [], Array(0..<40), [], Array(40..<60)])
    }

    @Test func `holds no result when the queue is empty`() {
        var verifier = InlineVerifier()
        let clock = clock(step: InlineVerifier.passTime)
        for number in UInt64(0)..<5 {
            #expect(verifier.enqueue(job("s", number)) == true)
            #expect(verifier.run(by: clock) { _, _ in }.map(\.job.exchange.raw) == [number])
            #expect(verifier.isIdle)
        }
    }

    @Test func `verifies one job per iteration, however long it takes`() {
        var verifier = InlineVerifier()
        for number in UInt64(0)..<3 { #expect(verifier.enqueue(job("s", number)) == true) }
        let clock = clock(step: InlineVerifier.passTime * 20)
        for left in [true, true, false] {
            #expect(verifier.run(by: clock) { _, _ in }.count == (left ? 0 : 3))
            #expect(verifier.isIdle == !left)
        }
    }

    @Test func `queues no more jobs than its limit`() {
        var verifier = InlineVerifier()
        for _ in 0..<InlineVerifier.limit { #expect(verifier.enqueue(job("s")) == true) }
        #expect(verifier.enqueue(job("s")) == false)
        _ = verifier.run(by: clock(step: InlineVerifier.passTime)) { _, _ in }
        #expect(verifier.enqueue(job("s")) == true)
    }

    @Test func `leaves slow jobs to the threads`() {
        struct Sessions: SessionVerifying {
            static let accessPrefix = "mat_"

            func verify(
                _ token: Credential, in context: AuthenticationContext
            ) async throws(AuthenticationError) -> VerifiedSession { throw .rejected("session.none") }

            func inspect(
                _ token: Credential, in context: AuthenticationContext
            ) async throws(AuthenticationError) -> VerifiedSession { throw .rejected("session.none") }
        }
        var verifier = InlineVerifier()
        // A provider that does not declare itself quick never runs on the loop.
        #expect(verifier.enqueue(job("s", by: ProviderHandle(VerifierTests.Trusting(), name: "t"))) == false)
        let session = Verifier.Job(
            credential: Credential(bearer: [1]), target: .sessions(Sessions()), subjects: nil,
            context: AuthenticationContext(now: UnixTime(seconds: 1), deadline: .never), sink: sink,
            exchange: ExchangeID(raw: 0), epoch: 2)
        #expect(verifier.enqueue(session) == false)
        #expect(verifier.isIdle)
    }

    @Test func `passes on identities whose account is missing, and no others`() {
        var verifier = InlineVerifier()
        let keys = ProviderHandle(VerifierTests.Trusting(isQuick: true, subjectSource: .provider), name: "k")
        #expect(verifier.enqueue(job("s", 0, subjects: NoSubjects())) == true)
        #expect(verifier.enqueue(job("s", 1, by: keys, subjects: NoSubjects())) == true)
        #expect(verifier.enqueue(job("bad", 2, subjects: NoSubjects())) == true)
        var others: [String] = []
        let completed = verifier.run(by: clock(step: 1)) { job, identity in
            others.append("\(job.exchange.raw) \(identity?.providerSubject ?? "none")")
        }
        #expect(completed.map(\.job.exchange.raw) == [1, 2])
        #expect(others == ["0 s"])
    }

    @Test func `passes on jobs that cannot be decided immediately`() {
        var verifier = InlineVerifier()
        for (number, text) in ["s", "later", "bad", "later"].enumerated() {
            #expect(verifier.enqueue(job(text, UInt64(number))) == true)
        }
        var others: [UInt64] = []
        let completed = verifier.run(by: clock(step: 1)) { job, _ in others.append(job.exchange.raw) }
        #expect(completed.map(\.job.exchange.raw) == [0, 2])
        #expect(others == [1, 3])
    }
}
