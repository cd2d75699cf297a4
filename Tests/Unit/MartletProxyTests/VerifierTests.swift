import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
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

        var accepts: [CredentialSource] { [.bearerPrefix("")] }

        func verify(
            _ credential: Credential, in context: AuthenticationContext
        ) throws(AuthenticationError) -> LocalVerdict {
            let text = credential.withBytes { String(decoding: $0, as: UTF8.self) }
            if text == "bad" { throw .rejected("trusting.bad") }
            if text == "later" { return .undecided }
            return .authenticated(
                Identity(
                    providerSubject: text, issuer: "t", claims: [:], authTime: context.now, issuedAt: context.now,
                    expiresAt: context.now))
        }

        func authenticate(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> Identity {
            throw .rejected("trusting.not_asked")
        }
    }

    private func job(
        _ text: String, _ exchange: Int32, _ mailbox: Mailbox, deadline: MonotonicTime = .never
    ) -> Verifier.Job {
        Verifier.Job(
            credential: Credential(bearer: Array(text.utf8)), judge: .provider(ProviderHandle(Trusting(), name: "t")),
            subjects: nil, context: AuthenticationContext(now: UnixTime(seconds: 1), deadline: deadline),
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
}
