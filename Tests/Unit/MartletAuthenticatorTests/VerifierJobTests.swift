import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import Testing

@testable import MartletAuthenticator

@Suite struct VerifierJobTests {
    /// Uses the credential as the subject, and rejects "bad".
    private struct Issuing: Authenticating {
        typealias Configuration = VerifierTests.Trusting.Nothing

        static let kind: ProviderKind = "issuing"
        static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
        init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}
        init() {}

        var accepts: [CredentialSource] { [.bearerPrefix("")] }

        func authenticate(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> Identity {
            let text = credential.withBytes { String(decoding: $0, as: UTF8.self) }
            if text == "bad" { throw .rejected("issuing.bad") }
            return Samples.identity(text, expires: 1_500)
        }
    }

    /// The account of an identity; "bob" has none, because the store is unavailable.
    private struct Accounts: SubjectResolving {
        func subject(of identity: Identity, provider: String) async throws(AuthenticationError) -> ResolvedSubject {
            if identity.providerSubject == "bob" { throw .unavailable("accounts.down") }
            return ResolvedSubject(
                "usr_\(provider)_\(identity.providerSubject)", claims: AccountClaims(account: ["role": "staff"]))
        }

        func knownSubject(of identity: Identity, provider: String) async throws(AuthenticationError) -> ResolvedSubject?
        { nil }
    }

    /// Accepts the session "mat_1" alone.
    private struct Sessions: SessionVerifying {
        static let accessPrefix = "mat_"

        func verify(
            _ token: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> VerifiedSession {
            guard token.withBytes({ $0 == Array("mat_1".utf8) }) else { throw .rejected("session.unknown") }
            let principal = Principal(
                identity: Samples.identity("eve"), provider: "apple", subject: "usr_9", sessionID: "s1")
            return VerifiedSession(principal: principal, number: 77, cacheLifetime: .seconds(30), end: 1_800_250)
        }

        func inspect(
            _ token: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> VerifiedSession { throw .rejected("session.inspected") }
    }

    @Test(arguments: [
        (true, true, "session.inspected"), (true, false, "session.unknown"), (false, true, "session.unknown"),
    ])
    func `the cookie of an exchange in progress is verified without being replaced`(
        isCookie: Bool, isRevalidation: Bool, expected: ErrorCode
    ) async {
        let value = Array("mct_1".utf8)
        let job = Verifier.Job(
            credential: isCookie ? Credential(cookie: value) : Credential(bearer: value), target: .sessions(Sessions()),
            subjects: nil, context: AuthenticationContext(now: UnixTime(seconds: 1_000), deadline: .never),
            sink: RecordedResults(), exchange: ExchangeID(raw: 5), epoch: 3, isRevalidation: isRevalidation)
        do throws(AuthenticationError) {
            _ = try await job.principal(nil)
            Issue.record("accepted")
        } catch {
            #expect(error.code == expected)
        }
    }

    private static let issuing = Verifier.Target.provider(ProviderHandle(Issuing(), name: "issuing"))

    private func job(
        _ text: String, _ target: Verifier.Target = Self.issuing, subjects: (any SubjectResolving)? = nil,
        client: ClientNetwork? = nil, sink: RecordedResults = RecordedResults()
    ) -> Verifier.Job {
        Verifier.Job(
            credential: Credential(bearer: Array(text.utf8)), target: target, subjects: subjects,
            context: AuthenticationContext(now: UnixTime(seconds: 1_000), deadline: .never, client: client),
            sink: sink, exchange: ExchangeID(raw: 5), epoch: 3)
    }

    private func result(_ job: Verifier.Job, _ verified: Identity? = nil) async -> VerificationResult {
        do throws(AuthenticationError) {
            return .success(try await job.principal(verified))
        } catch {
            return .failure(error)
        }
    }

    private func code(_ result: VerificationResult) -> ErrorCode? {
        if case .failure(let error) = result { error.code } else { nil }
    }

    // MARK: Principals

    @Test func `a provider authenticates, and names the subject without accounts`() async throws {
        let verified = try await result(job("ada")).get()
        let principal = verified.principal
        #expect(principal.subject == "issuing:ada" && principal.provider == "issuing" && principal.sessionID == nil)
        #expect(verified.revocationID == SubjectRevocationID.of("issuing:ada"))
        #expect(verified.expires == 1_500 && verified.end == 1_500_000)
    }

    @Test func `accounts name the subject`() async throws {
        let verified = try await result(job("ada", subjects: Accounts())).get()
        let principal = verified.principal
        #expect(principal.subject == "usr_issuing_ada" && principal.provider == "issuing")
        #expect(principal.identity.providerSubject == "ada" && principal.sessionID == nil)
        #expect(principal.identity.claims["role"] == "staff")
        #expect(verified.revocationID == SubjectRevocationID.of("usr_issuing_ada"))
        #expect(verified.expires == 1_500 && verified.end == 1_500_000)
    }

    @Test func `an identity that is verified already is not verified again`() async throws {
        // This provider would reject its credential.
        let target = Verifier.Target.provider(Samples.handle("tokens", .bearerPrefix("t-")))
        let identity = Samples.identity("eve", expires: 1_200)
        let verified = try await result(job("bad", target), identity).get()
        #expect(verified.principal.subject == "tokens:eve" && verified.expires == 1_200)
        let account = try await result(job("bad", target, subjects: Accounts()), identity).get()
        #expect(account.principal.subject == "usr_tokens_eve" && account.expires == 1_200)
    }

    @Test func `a session is verified by the store, and its account is known`() async throws {
        // The store is not queried for the account.
        let verified = try await result(job("mat_1", .sessions(Sessions()), subjects: Accounts())).get()
        #expect(verified.principal.subject == "usr_9" && verified.principal.sessionID == "s1")
        #expect(verified.revocationID == 77 && verified.expires == 1_030 && verified.end == 1_800_250)
    }

    @Test func `errors of providers and stores are passed on`() async {
        let rejected = await result(job("bad"))
        let unknown = await result(job("mat_2", .sessions(Sessions())))
        let unavailable = await result(job("bob", subjects: Accounts()))
        #expect(code(rejected) == "issuing.bad" && code(unknown) == "session.unknown")
        #expect(code(unavailable) == "accounts.down")
    }

    @Test func `a provider that authenticates no request rejects, verified or not`() async {
        let target = Verifier.Target.provider(Samples.silent("silent"))
        let plain = await result(job("ada", target))
        let verified = await result(job("ada", target), Samples.identity())
        #expect(code(plain) == "auth.provider_takes_no_credential" && code(verified) == code(plain))
    }

    // MARK: Delivery

    @Test func `the result is delivered once, for the exchange and the epoch of the job`() throws {
        let sink = RecordedResults()
        job("ada", sink: sink).complete(.failure(.rejected("sample.invalid")))
        let results = sink.drain()
        #expect(results.count == 1 && results.first?.exchange == ExchangeID(raw: 5) && results.first?.epoch == 3)
        let result = try #require(results.first?.result)
        #expect(code(result) == "sample.invalid")
    }

    @Test func `a finished verification is not delivered by itself`() throws {
        let sink = RecordedResults()
        let finished = job("ada", sink: sink).finished(with: AuthenticatorBench.verified())
        #expect(finished.exchange == ExchangeID(raw: 5) && finished.epoch == 3 && sink.drain().isEmpty)
        #expect(try finished.result.get().principal.subject == "tokens:ada")
    }

    @Test func `a job belongs to the network of its client`() throws {
        let prefix = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
        let network = try #require(ClientNetwork(address: prefix + [192, 0, 2, 1]))
        #expect(job("ada", client: network).owner == WorkOwner(group: 0x8000_00FF_FFC0_0002, member: 0xFFFF_C000_0201))
        #expect(job("ada").owner == .anonymous)
    }
}

@Suite struct LocalDecisionTests {
    private let context = AuthenticationContext(now: UnixTime(seconds: 1), deadline: .never)

    private func decide(_ text: String) -> Result<Identity, AuthenticationError>? {
        VerifierTests.Trusting().decide(Credential(bearer: Array(text.utf8)), in: context)
    }

    @Test func `a provider decides immediately, unless it would have to wait`() throws {
        let identity = try #require(try decide("ada")?.get())
        #expect(identity.providerSubject == "ada")
        let isUndecided = decide("later") == nil
        #expect(isUndecided)
        guard case .failure(let error)? = decide("bad") else {
            Issue.record("not rejected")
            return
        }
        #expect(error.code == "trusting.bad" && error.disposition == .rejected)
    }
}

@Suite struct VerifiedPrincipalTests {
    /// When the session's token expires, how long it may be cached, and when it is verified again.
    private static let sessions: [(Int64, Duration, Int64)] = [
        (2_000, .seconds(30), 1_030), (1_031, .seconds(30), 1_030), (1_030, .seconds(30), 1_030),
        (1_029, .seconds(30), 1_029), (900, .seconds(30), 900), (2_000, .zero, 1_000),
        (2_000, .milliseconds(1_999), 1_001), (.max, .seconds(Int64.max), .max),
    ]

    @Test(arguments: sessions)
    func `a session is cached for its time, and no longer than its token is valid`(
        expires: Int64, lifetime: Duration, expected: Int64
    ) {
        let session = VerifiedSession(
            principal: Samples.principal(expires: expires), number: 77, cacheLifetime: lifetime, end: 1_800_250)
        let context = AuthenticationContext(now: UnixTime(seconds: 1_000), deadline: .never)
        let verified = VerifiedPrincipal(session, in: context)
        #expect(verified.expires == expected && verified.end == 1_800_250 && verified.revocationID == 77)
    }

    @Test(arguments: [(2_000, 2_000_000), (.max, .max)] as [(Int64, Int64)])
    func `a session without an end of its own ends when its token expires`(expires: Int64, end: Int64) {
        let session = VerifiedSession(
            principal: Samples.principal(expires: expires), number: 1, cacheLifetime: .zero)
        let context = AuthenticationContext(now: UnixTime(seconds: 1_000), deadline: .never)
        #expect(VerifiedPrincipal(session, in: context).end == end)
    }

    @Test(arguments: [(2_000, 2_000_000), (0, 0), (-1, -1_000), (.max, .max), (.min, .min)] as [(Int64, Int64)])
    func `another credential is valid until it expires, and revoked with its subject`(expires: Int64, end: Int64) {
        let verified = VerifiedPrincipal(Samples.principal(expires: expires))
        #expect(verified.expires == expires && verified.end == end)
        #expect(verified.revocationID == SubjectRevocationID.of("tokens:ada"))
    }

    @Test func `a provider's principal has its name`() {
        let verified = Samples.handle("tokens", .basic).principal(of: Samples.identity("bob", expires: 1_200))
        #expect(verified.principal.subject == "tokens:bob" && verified.principal.provider == "tokens")
        #expect(verified.principal.sessionID == nil && verified.expires == 1_200 && verified.end == 1_200_000)
        #expect(verified.revocationID == SubjectRevocationID.of("tokens:bob"))
    }

    @Test func `a boxed result is the result`() throws {
        let verified = AuthenticatorBench.verified("eve")
        let boxed = BoxedVerificationResult(verified)
        #expect(try boxed.result.get() === verified.get())
    }
}
