import MartletConfig
import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletAccounts
@testable import MartletResponder
@testable import MartletSignIn

/// The endpoints with an account store in SQLite, and what the store is asked to mail.
struct SelfServiceStand: Sendable {
    let stand: Stand
    let accounts: AccountStore

    func register(_ members: String) async -> Stand.Reply { await stand.post("/auth/register", members) }

    /// Asks for a mail because of a forgotten password.
    func forget(_ address: String, from network: UInt8 = 0) async -> Stand.Reply {
        await stand.send(
            "POST", "/auth/password/forgot", type: Stand.json, Array(#"{"email":"\#(address)"}"#.utf8),
            from: .sample(network))
    }

    /// The mails so far, the oldest first.
    func mails() async throws -> [MailRequest] { try await events("mails").compactMap { MailRequest($0.data) } }

    /// The events for one subscriber so far: `mails`, or `all` others.
    func events(_ hook: String) async throws -> [Event] {
        try await accounts.entries(to: hook, in: nil, from: 0, limit: 1000).entries.map(\.event)
    }

    /// The token of the last mail.
    func token() async throws -> String { try #require(try await mails().last { $0.token != nil }?.token) }

    func user(_ key: String) async throws -> UserRecord? { try await accounts.record(for: key) }

    /// Sets a new password with a mail's token.
    func reset(_ token: String, to password: String = "battery staple") async -> Stand.Reply {
        await stand.post("/auth/password/reset", #"{"token":"\#(token)","new_password":"\#(password)"}"#)
    }

    /// The subject of a login.
    func subject(_ provider: String, _ person: String) async throws -> String {
        let reply = await stand.post("/auth/login/\(provider)", #"{"proof":"\#(person)"}"#)
        return try #require(reply["subject"], "\(reply.summary)")
    }
}

extension ClientNetwork {
    /// One of several networks without neighbors.
    static func sample(_ number: UInt8) -> ClientNetwork? {
        ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 10, number, 0, 1])
    }
}

extension SelfServingProvider {
    init(
        verifies: Bool = true, requiresName: Bool = false, registers: Bool = true, resets: Bool = true,
        link: String? = nil
    ) {
        let link = link.flatMap { LinkTemplate($0) }
        self.init(
            PasswordSelfService(
                registration: registers
                    ? .init(verifiesAddress: verifies, requiresName: requiresName, link: link) : nil,
                reset: resets ? .init(link: link) : nil))
    }
}

/// Runs a test with providers of these rules, named `password`, `password2` and so on.
/// - Parameter change: of the endpoints, which have other providers, too.
func withSelfService(
    _ providers: [SelfServingProvider], changing change: @escaping (inout SignInSetup) -> Void = { _ in },
    _ body: (SelfServiceStand) async throws -> Void
) async throws {
    let folder = try TemporaryFolder()
    let engine = SQLiteEngine(
        path: folder.file("accounts.db"), options: SQLiteOptions(), schema: Schema(.sqlite), clock: .system,
        logger: .silent)
    let time = ManualTime()
    let accounts = AccountStore(engine, clock: time.clock, logger: .silent)
    try await accounts.start()
    accounts.subscribe(
        EventSubscriptions([
            .init(hook: "mails", patterns: [try #require(EventPattern("mail.*"))]),
            .init(hook: "all", patterns: [try #require(EventPattern("*"))]),
        ]))
    let stand = Stand(time: time) { setup in
        setup.accounts = accounts
        setup.links = accounts
        setup.providers = providers.enumerated().map {
            ProviderHandle($1, name: $0 == 0 ? "password" : "password\($0 + 1)")
        }
        change(&setup)
    }
    let result: Result<Void, any Error>
    do {
        result = .success(try await body(SelfServiceStand(stand: stand, accounts: accounts)))
    } catch {
        result = .failure(error)
    }
    await accounts.shutdown()
    // No token and no address is ever logged.
    #expect(!stand.lines.text.contains("mlt_") && !stand.lines.text.contains("example.com"))
    try result.get()
}
