import MartletCore
import MartletProvider
import Synchronization
import Testing

@testable import MartletProxy

@Suite struct LoopJudgeTests {
    private struct Nobody: SubjectResolving {
        func subject(of identity: Identity, provider: String) async throws(AuthenticationError) -> String {
            throw .rejected("nobody.found")
        }

        func knownSubject(of identity: Identity, provider: String) async throws(AuthenticationError) -> String? { nil }
    }

    private let mailbox: Mailbox
    private let quick = ProviderHandle(VerifierTests.Trusting(isQuick: true), name: "t")

    init() throws { mailbox = try Mailbox() }

    private func job(
        _ text: String, _ exchange: Int32 = 0, by handle: ProviderHandle? = nil, subjects: (any SubjectResolving)? = nil
    ) -> Verifier.Job {
        Verifier.Job(
            credential: Credential(bearer: Array(text.utf8)), judge: .provider(handle ?? quick), subjects: subjects,
            context: AuthenticationContext(now: UnixTime(seconds: 1), deadline: .never), mailbox: mailbox,
            exchange: exchange, generation: 1, epoch: 2)
    }

    /// A clock that goes on by a step whenever it is read.
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

    @Test func `judges as the threads do, in the order of asking`() {
        var judge = LoopJudge()
        for number in 0..<20 {
            #expect(judge.take(job(number % 7 == 0 ? "bad" : "s\(number)", Int32(number))) == true)
        }
        let judged = judge.judge(by: clock(step: 1)) { _ in Issue.record("passed on") }
        #expect(judged.map(\.job.exchange) == Array(0..<20))
        for (job, verdict) in judged {
            switch verdict {
            case .success(let proven):
                #expect(proven.principal.subject == "t:s\(job.exchange)" && job.exchange % 7 != 0)
            case .failure(let error): #expect(error.code == "trusting.bad" && job.exchange % 7 == 0)
            }
        }
        #expect(judge.isIdle)
    }

    @Test func `stops when the time of the pass is over, and gives verdicts away when enough have come`() {
        var judge = LoopJudge()
        for number in 0..<60 { #expect(judge.take(job("s", Int32(number))) == true) }
        let clock = clock(step: LoopJudge.passTime / 10)
        var given: [[Int32]] = []
        while !judge.isIdle { given.append(judge.judge(by: clock) { _ in }.map(\.job.exchange)) }
        #expect(given == [[], [], [], Array(0..<40), [], Array(40..<60)])
    }

    @Test func `keeps no verdict when nothing waits`() {
        var judge = LoopJudge()
        let clock = clock(step: LoopJudge.passTime)
        for number in 0..<5 {
            #expect(judge.take(job("s", Int32(number))) == true)
            #expect(judge.judge(by: clock) { _ in }.map(\.job.exchange) == [Int32(number)])
            #expect(judge.isIdle)
        }
    }

    @Test func `judges one in every pass, however long one takes`() {
        var judge = LoopJudge()
        for number in 0..<3 { #expect(judge.take(job("s", Int32(number))) == true) }
        let clock = clock(step: LoopJudge.passTime * 20)
        for left in [true, true, false] {
            #expect(judge.judge(by: clock) { _ in }.count == (left ? 0 : 3))
            #expect(judge.isIdle == !left)
        }
    }

    @Test func `takes no more than it may`() {
        var judge = LoopJudge()
        for _ in 0..<LoopJudge.limit { #expect(judge.take(job("s")) == true) }
        #expect(judge.take(job("s")) == false)
        _ = judge.judge(by: clock(step: LoopJudge.passTime)) { _ in }
        #expect(judge.take(job("s")) == true)
    }

    @Test func `leaves to the threads what may take long`() {
        struct Sessions: SessionJudging {
            static let accessPrefix = "mat_"

            func judge(
                _ token: Credential, in context: AuthenticationContext
            ) async throws(AuthenticationError) -> ProvenSession { throw .rejected("session.none") }

            func inspect(
                _ token: Credential, in context: AuthenticationContext
            ) async throws(AuthenticationError) -> ProvenSession { throw .rejected("session.none") }
        }
        var judge = LoopJudge()
        // A provider that does not call itself quick is never asked on the loop.
        #expect(judge.take(job("s", by: ProviderHandle(VerifierTests.Trusting(), name: "t"))) == false)
        #expect(judge.take(job("s", subjects: Nobody())) == false)
        let session = Verifier.Job(
            credential: Credential(bearer: [1]), judge: .sessions(Sessions()), subjects: nil,
            context: AuthenticationContext(now: UnixTime(seconds: 1), deadline: .never), mailbox: mailbox, exchange: 0,
            generation: 1, epoch: 2)
        #expect(judge.take(session) == false)
        #expect(judge.isIdle)
    }

    @Test func `passes on what cannot be decided at once`() {
        var judge = LoopJudge()
        for (number, text) in ["s", "later", "bad", "later"].enumerated() {
            #expect(judge.take(job(text, Int32(number))) == true)
        }
        var others: [Int32] = []
        let judged = judge.judge(by: clock(step: 1)) { others.append($0.exchange) }
        #expect(judged.map(\.job.exchange) == [0, 2])
        #expect(others == [1, 3])
    }
}
