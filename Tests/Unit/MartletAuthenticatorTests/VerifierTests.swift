import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletAuthenticator

@Suite struct VerifierTests {
    /// Uses the credential as the subject, rejects "bad", and would have to wait for "later".
    struct Trusting: LocallyVerifying {
        typealias Configuration = Nothing

        struct Nothing: ConfigurationDecodable {
            init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
        }

        static let kind: ProviderKind = "trusting"
        static func validate(_ configuration: Nothing, into diagnostics: inout Diagnostics) {}
        init(_ configuration: Nothing, context: ProviderContext) throws(ConfigurationError) {
            (isQuick, subjectSource) = (false, .account)
        }
        init(isQuick: Bool = false, subjectSource: SubjectSource = .account) {
            (self.isQuick, self.subjectSource) = (isQuick, subjectSource)
        }

        let isQuick: Bool
        let subjectSource: SubjectSource
        /// Holds waiting verifications.
        let gate = Gate()

        var accepts: [CredentialSource] { [.bearerPrefix("")] }

        func verify(
            _ credential: Credential, in context: AuthenticationContext
        ) throws(AuthenticationError) -> LocalVerification {
            let text = credential.withBytes { String(decoding: $0, as: UTF8.self) }
            if text == "bad" { throw .rejected("trusting.bad") }
            if text.hasPrefix("later") { return .undecided }
            return .authenticated(
                Identity(
                    providerSubject: text, issuer: "t", claims: [:], authTime: context.now, issuedAt: context.now,
                    expiresAt: context.now, subjectSource: subjectSource))
        }

        func authenticate(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> Identity {
            await gate.pass()
            throw .rejected("trusting.not_asked")
        }
    }

    private func job(
        _ text: String, _ number: UInt64, _ sink: RecordedResults, deadline: MonotonicTime = .never,
        target: Verifier.Target = .provider(ProviderHandle(Trusting(), name: "t")),
        subjects: (any SubjectResolving)? = nil
    ) -> Verifier.Job {
        Verifier.Job(
            credential: Credential(bearer: Array(text.utf8)), target: target, subjects: subjects,
            context: AuthenticationContext(now: UnixTime(seconds: 1), deadline: deadline),
            sink: sink, exchange: ExchangeID(raw: number), epoch: 2)
    }

    /// Waits for so many results and returns them by the jobs' numbers.
    private func results(_ sink: RecordedResults, _ count: Int) async -> [UInt64: Result<String, AuthenticationError>] {
        var found: [UInt64: Result<String, AuthenticationError>] = [:]
        while found.count < count {
            for finished in sink.drain() {
                guard finished.epoch == 2, found[finished.exchange.raw] == nil else {
                    Issue.record("another result, or a duplicate")
                    continue
                }
                found[finished.exchange.raw] = finished.result.map(\.principal.identity.providerSubject)
            }
            await Task.yield()
        }
        return found
    }

    @Test(arguments: [1, 2, 3])
    func `delivers one result per job, to its loop`(threads: Int) async {
        let verifier = Verifier(threads: threads, clock: .system)
        let sinks = [RecordedResults(), RecordedResults()]
        for number in 0..<400 {
            verifier.submit(job(number % 7 == 0 ? "bad" : "s\(number)", UInt64(number), sinks[number % 2]))
        }
        for (index, sink) in sinks.enumerated() {
            let found = await results(sink, 200)
            for number in 0..<400 where number % 2 == index {
                switch found[UInt64(number)] {
                case .success(let subject): #expect(subject == "s\(number)" && number % 7 != 0)
                case .failure(let error): #expect(error.code == "trusting.bad" && number % 7 == 0)
                case nil: Issue.record("no result")
                }
            }
        }
        verifier.stop()
    }

    @Test func `jobs that wait for keys reject only others that would`() async {
        let verifier = Verifier(threads: 2, clock: .system)
        let sink = RecordedResults()
        let (slow, other) = (Trusting(), Trusting())
        let target = Verifier.Target.provider(ProviderHandle(slow, name: "slow"))
        let limit = WaitingKind.keys(provider: "slow").limit
        for number in 0..<limit { verifier.submit(job("later", UInt64(number), sink, target: target)) }
        verifier.submit(job("later", UInt64(limit), sink, target: target))
        // Which of them exceeds the limit depends on the threads.
        #expect(await results(sink, 1).values.first?.code == "auth.overloaded")
        verifier.submit(job("known", 10_001, sink, target: target))
        verifier.submit(job("known", 10_002, sink, target: target, subjects: Naming()))
        verifier.submit(job("any", 10_003, sink, target: .sessions(Refusing())))
        other.gate.open()
        verifier.submit(
            job("later", 10_004, sink, target: .provider(ProviderHandle(other, name: "other"))))
        let found = await results(sink, 4)
        #expect(found[10_001]?.subject == "known" && found[10_002]?.subject == "known")
        #expect(found[10_003]?.code == "refusing.refused" && found[10_004]?.code == "trusting.not_asked")
        slow.gate.open()
        #expect(await results(sink, limit).count == limit)
        verifier.submit(job("later", 10_005, sink, target: target))
        #expect(await results(sink, 1)[10_005]?.code == "trusting.not_asked")
        verifier.stop()
    }

    /// Finds the subject immediately.
    private struct Naming: SubjectResolving {
        func subject(of identity: Identity, provider: String) async throws(AuthenticationError) -> ResolvedSubject {
            ResolvedSubject("usr_1")
        }
        func knownSubject(of identity: Identity, provider: String) async throws(AuthenticationError) -> ResolvedSubject?
        { nil }
    }

    private struct Refusing: SessionVerifying {
        static let accessPrefix = "mat_"

        func verify(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> VerifiedSession {
            throw .rejected("refusing.refused")
        }

        func inspect(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> VerifiedSession {
            try await verify(credential, in: context)
        }
    }

    @Test func `rejects jobs after their deadline or after the stop`() async {
        let verifier = Verifier(threads: 1, clock: .system)
        let sink = RecordedResults()
        verifier.submit(job("s", 1, sink, deadline: MonotonicTime(nanoseconds: 0)))
        #expect(await results(sink, 1)[1]?.code == "auth.overloaded")
        verifier.stop()
        verifier.submit(job("s", 2, sink))
        #expect(await results(sink, 1)[2]?.code == "auth.overloaded")
    }
}

extension Result<String, AuthenticationError> {
    fileprivate var code: ErrorCode? {
        if case .failure(let error) = self { error.code } else { nil }
    }

    fileprivate var subject: String? { try? get() }
}
