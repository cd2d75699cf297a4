import MartletAccounts
import MartletConfig
import MartletCore
import MartletEvents
import MartletIO
import MartletJSON
import MartletProvider
import MartletTesting

@testable import MartletIdentities
@testable import MartletSession

/// An issuer that a test scripts.
final class ScriptedIssuer: Refreshing, Revoking, Unlinking, SigningIn {
    struct Configuration: ConfigurationDecodable {
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    static let kind: ProviderKind = "apple"

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    let checkSchedule: CheckSchedule?
    /// What it does of a check or a revocation of a grant, by the grant's text.
    let script: @Sendable (String) throws(AuthenticationError) -> GrantState
    let checked = Box<[String]>([])
    let revoked = Box<[String]>([])
    let unlinked = Box<[String]>([])

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        checkSchedule = nil
        script = { _ in .valid }
    }

    init(
        _ schedule: CheckSchedule? = nil,
        _ script: @escaping @Sendable (String) throws(AuthenticationError) -> GrantState = { _ in .valid }
    ) {
        checkSchedule = schedule
        self.script = script
    }

    func signIn(
        with form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        throw .rejected("test.unused")
    }

    func check(
        _ grant: ProviderGrant, of subject: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> GrantState {
        checked.withLock { $0.append(grant.text) }
        return try script(grant.text)
    }

    func revoke(_ grant: ProviderGrant, until deadline: MonotonicTime) async throws(AuthenticationError) {
        _ = try script(grant.text)
        revoked.withLock { $0.append(grant.text) }
    }

    func unlink(_ subject: String) async throws(AuthenticationError) { unlinked.withLock { $0.append(subject) } }

    var handle: ProviderHandle { ProviderHandle(self, name: "apple") }
}

extension ProviderGrant {
    var text: String { token.withBytes { String(decoding: $0, as: UTF8.self) } }
}

/// Sessions as a list that can become unavailable.
final class ScriptedSessions: AccountSessionEnding {
    let live = Box<[SessionSummary]>([])
    let ended = Box<[String]>([])
    private let positions = Box((0..<100).map { SessionPosition(order: $0) })
    let isAvailable = Box(true)

    func add(_ id: String, by provider: String) {
        let time = UnixTime(seconds: 1)
        live.withLock {
            $0.append(
                SessionSummary(id: id, provider: provider, createdAt: time, lastSeenAt: time, expiresAt: time))
        }
    }

    /// The length of a page.
    private static let pageSize = 3

    func page(of subject: String, from start: SessionPosition?) async throws(SessionError) -> SessionPage {
        guard isAvailable.value else { throw SessionError("store.down", .unavailable) }
        let all = live.value
        let first = positions.value.firstIndex { $0 == start }.map { ($0 + 1) * Self.pageSize } ?? 0
        let sessions = all.dropFirst(first).prefix(Self.pageSize)
        guard first + Self.pageSize < all.count else { return SessionPage(sessions: Array(sessions), next: nil) }
        return SessionPage(sessions: Array(sessions), next: positions.value[first / Self.pageSize])
    }

    func end(_ end: SessionsEnd, of subject: String) async throws(SessionError) {
        guard isAvailable.value else { throw SessionError("store.down", .unavailable) }
        ended.withLock { $0.append("\(subject) \(end.only ?? end.provider ?? "all")") }
        live.withLock { live in
            live.removeAll { session in
                if let only = end.only { return session.id == only }
                return session.id != end.except && (end.provider.map { $0 == session.provider } ?? true)
            }
        }
    }
}

/// Where claims were published.
struct Publications: Sendable {
    let subjects = Box<[String]>([])
    let isAvailable = Box(true)
}

/// An account store in a file, with everything that works on it.
struct Stage {
    let store: AccountStore
    let time: SimulatedTime
    let sessions = ScriptedSessions()
    let published = Publications()
    let keys: GrantKeys
    /// The file.
    let path: String

    static let keyText = Base64.encode([UInt8](repeating: 7, count: 32), padding: .required)

    /// Runs a test with a fresh store.
    static func run(_ body: (Stage) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let loop = try ServiceLoop(name: "test-service")
        let resolver = try Resolver()
        let time = SimulatedTime()
        let store = try Accounts.open(
            .sqlite(path: folder.file("accounts.db")), clock: time.clock, logger: .silent, loop: loop,
            resolver: resolver)
        let result: Result<Void, any Error>
        do {
            try await store.start()
            guard let keys = GrantKeys([Secret(keyText)]) else { throw TestFailure("no keys") }
            if let pattern = EventPattern("*") {
                store.subscribe(
                    EventSubscriptions([EventSubscriptions.Subscriber(hook: "all", patterns: [pattern])]))
            }
            result = .success(
                try await body(Stage(store: store, time: time, keys: keys, path: folder.file("accounts.db"))))
        } catch {
            result = .failure(error)
        }
        await store.shutdown()
        resolver.shutdown()
        loop.shutdown()
        try result.get()
    }

    func runner(
        _ issuer: ScriptedIssuer, _ policy: DeletionPolicy = Stage.policy, hooks: [String] = ["all"]
    ) -> JobRunner {
        var surroundings = JobRunner.Surroundings(
            store: store.life, leases: store, accounts: store, sessions: sessions,
            publishClaims: { [published] subject throws(ClaimPublisher.PublicationError) in
                guard published.isAvailable.value else {
                    throw .sessions(SessionError("store.down", .unavailable))
                }
                published.subjects.withLock { $0.append(subject) }
            },
            providers: [issuer.handle], keys: keys, policy: policy)
        surroundings.outbox = OutboxPruner(store, hooks: hooks, clock: time.clock, logger: .silent)
        return JobRunner(surroundings, clock: time.clock, logger: .silent)
    }

    func life(_ issuer: ScriptedIssuer, _ policy: DeletionPolicy = Stage.policy) -> IdentityLife {
        IdentityLife(
            store: store.life, runner: runner(issuer, policy), keys: keys, policy: policy, clock: time.clock)
    }

    static var policy: DeletionPolicy {
        var policy = DeletionPolicy()
        policy.revocationMembers = ["revoked_at_apple"]
        return policy
    }

    /// Logs a user in, as the endpoint does.
    @discardableResult
    func logIn(_ subject: String, grant: String?, by issuer: ScriptedIssuer) async throws -> String {
        let now = time.clock.unixTime
        let signIn = SignIn(
            identity: Identity(
                providerSubject: subject, issuer: "https://appleid.apple.com", claims: [:], authTime: now,
                issuedAt: now, expiresAt: now),
            grant: grant.map { ProviderGrant(client: "com.example.app", token: Secret($0)) })
        let identity = AccountIdentity(provider: "apple", subjects: [subject])
        let account = try await store.signIn(identity, keeping: [:], at: now)
        _ = try await life(issuer).confirm(signIn, identity, by: issuer.handle)
        return account.subject
    }

    func events() async throws -> [Event] {
        try await store.entries(to: "all", in: nil, from: 0, limit: 1000).entries.map(\.event)
    }

    /// Does everything that is due now.
    func performDue(_ issuer: ScriptedIssuer, _ policy: DeletionPolicy = Stage.policy) async throws {
        let runner = runner(issuer, policy)
        while true {
            let due = try await store.life.dueJobs(at: time.now, limit: 100)
            guard !due.isEmpty else { return }
            await runner.perform(due)
        }
    }
}
