import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletProxy

@Suite struct VerifierTests {
    /// Takes the credential for the subject, refuses "bad", and would have to wait for "later".
    struct Trusting: LocallyVerifying {
        typealias Configuration = Nothing

        struct Nothing: ConfigurationDecodable {
            init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
        }

        static let kind: ProviderKind = "trusting"
        static func validate(_ configuration: Nothing, into diagnostics: inout Diagnostics) {}
        init(_ configuration: Nothing, context: ProviderContext) throws(ConfigurationError) { isQuick = false }
        init(isQuick: Bool = false) { self.isQuick = isQuick }

        let isQuick: Bool
        /// Who has to wait does so until this is set.
        let gate = Box(false)

        var accepts: [CredentialSource] { [.bearerPrefix("")] }

        func verify(
            _ credential: Credential, in context: AuthenticationContext
        ) throws(AuthenticationError) -> LocalVerdict {
            let text = credential.withBytes { String(decoding: $0, as: UTF8.self) }
            if text == "bad" { throw .rejected("trusting.bad") }
            if text.hasPrefix("later") { return .undecided }
            return .authenticated(
                Identity(
                    providerSubject: text, issuer: "t", claims: [:], authTime: context.now, issuedAt: context.now,
                    expiresAt: context.now))
        }

        func authenticate(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> Identity {
            while !gate.value { try? await Task.sleep(for: .milliseconds(5)) }
            throw .rejected("trusting.not_asked")
        }
    }

    private func job(
        _ text: String, _ exchange: Int32, _ mailbox: Mailbox, deadline: MonotonicTime = .never,
        judge: Verifier.Judge = .provider(ProviderHandle(Trusting(), name: "t")),
        subjects: (any SubjectResolving)? = nil
    ) -> Verifier.Job {
        Verifier.Job(
            credential: Credential(bearer: Array(text.utf8)), judge: judge, subjects: subjects,
            context: AuthenticationContext(now: UnixTime(seconds: 1), deadline: deadline),
            mailbox: mailbox, exchange: exchange, generation: 1, epoch: 2)
    }

    /// The verdicts that have come once there are so many, by exchange.
    private func verdicts(_ mailbox: Mailbox, _ count: Int) async -> [Int32: Result<String, AuthenticationError>] {
        var found: [Int32: Result<String, AuthenticationError>] = [:]
        while found.count < count {
            for message in mailbox.drain() {
                guard case .verdict(let exchange, 1, 2, let verdict) = message, found[exchange] == nil else {
                    Issue.record("another message, or a verdict twice")
                    continue
                }
                found[exchange] = verdict.map(\.principal.identity.providerSubject)
            }
            await Task.yield()
        }
        return found
    }

    @Test(arguments: [1, 2, 3])
    func `answers every job once, to the mailbox that asked`(threads: Int) async throws {
        let verifier = Verifier(threads: threads, clock: .system)
        let mailboxes = [try Mailbox(), try Mailbox()]
        for number in 0..<400 {
            verifier.submit(job(number % 7 == 0 ? "bad" : "s\(number)", Int32(number), mailboxes[number % 2]))
        }
        for (place, mailbox) in mailboxes.enumerated() {
            let found = await verdicts(mailbox, 200)
            for number in 0..<400 where number % 2 == place {
                switch found[Int32(number)] {
                case .success(let subject): #expect(subject == "s\(number)" && number % 7 != 0)
                case .failure(let error): #expect(error.code == "trusting.bad" && number % 7 == 0)
                case nil: Issue.record("no verdict")
                }
            }
        }
        verifier.stop()
    }

    @Test func `who waits for keys turns away only others who would`() async throws {
        let verifier = Verifier(threads: 2, clock: .system)
        let mailbox = try Mailbox()
        let (slow, other) = (Trusting(), Trusting())
        let judge = Verifier.Judge.provider(ProviderHandle(slow, name: "slow"))
        let limit = WaitingKind.keys(provider: "slow").limit
        for number in 0..<limit { verifier.submit(job("later", Int32(number), mailbox, judge: judge)) }
        verifier.submit(job("later", Int32(limit), mailbox, judge: judge))
        // Which of them is one too many is for the threads to decide.
        #expect(await verdicts(mailbox, 1).values.first?.code == "auth.overloaded")
        verifier.submit(job("known", 10_001, mailbox, judge: judge))
        verifier.submit(job("known", 10_002, mailbox, judge: judge, subjects: Naming()))
        verifier.submit(job("any", 10_003, mailbox, judge: .sessions(Refusing())))
        other.gate.withLock { $0 = true }
        verifier.submit(
            job("later", 10_004, mailbox, judge: .provider(ProviderHandle(other, name: "other"))))
        let found = await verdicts(mailbox, 4)
        #expect(found[10_001]?.subject == "known" && found[10_002]?.subject == "known")
        #expect(found[10_003]?.code == "refusing.refused" && found[10_004]?.code == "trusting.not_asked")
        slow.gate.withLock { $0 = true }
        #expect(await verdicts(mailbox, limit).count == limit)
        verifier.submit(job("later", 10_005, mailbox, judge: judge))
        #expect(await verdicts(mailbox, 1)[10_005]?.code == "trusting.not_asked")
        verifier.stop()
    }

    /// Finds the subject at once.
    private struct Naming: SubjectResolving {
        func subject(of identity: Identity, provider: String) async throws(AuthenticationError) -> String { "usr_1" }
        func knownSubject(of identity: Identity, provider: String) async throws(AuthenticationError) -> String? { nil }
    }

    private struct Refusing: SessionJudging {
        static let accessPrefix = "mat_"

        func judge(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> ProvenSession {
            throw .rejected("refusing.refused")
        }

        func inspect(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> ProvenSession {
            try await judge(credential, in: context)
        }
    }

    @Test func `refuses what is too late or comes after the end`() async throws {
        let verifier = Verifier(threads: 1, clock: .system)
        let mailbox = try Mailbox()
        verifier.submit(job("s", 1, mailbox, deadline: MonotonicTime(nanoseconds: 0)))
        #expect(await verdicts(mailbox, 1)[1]?.code == "auth.overloaded")
        verifier.stop()
        verifier.submit(job("s", 2, mailbox))
        #expect(await verdicts(mailbox, 1)[2]?.code == "auth.overloaded")
    }
}

extension Result<String, AuthenticationError> {
    fileprivate var code: ErrorCode? {
        if case .failure(let error) = self { error.code } else { nil }
    }

    fileprivate var subject: String? { try? get() }
}
