import AppleProvider
import MartletConfig
import MartletCore
import MartletJOSE
import MartletProvider
import MartletTesting
import Synchronization

/// A provider with a simulated, in-memory Apple.
struct Bench {
    static let now: Int64 = 1_800_000_000
    static let key = Result { try SigningKey("RSAKEY1") }
    static let otherKey = Result { try SigningKey("RSAKEY2") }
    static let ellipticKey = Result { try SigningKey("ECKEY1", .p256) }

    let provider: AppleProvider
    let issuer: IssuerInMemory

    /// - Parameters:
    ///   - lines: further lines of the provider's block, `key: value` each.
    ///   - document: Apple's response; by default the three keys.
    ///   - store: the store of nonces.
    ///   - http: Apple's other endpoints; `nil` fails every call.
    init(
        _ lines: [(String, Value)] = [], document: [UInt8]? = nil, store: any SharedStoring = MemoryStore(clock: clock),
        http: (any HTTPCalling)? = nil, logger: Logger = .silent
    ) throws {
        var entries: [(String, Value)] = [("audiences", .list(["com.example.app", "com.example.web"]))]
        entries.removeAll { entry in lines.contains { $0.0 == entry.0 } }
        var diagnostics = Diagnostics()
        let block = Self.block(entries + lines)
        guard let configuration = block.decode(AppleConfiguration.self, title: "provider 'apple'", into: &diagnostics)
        else {
            throw ConfigurationRejected(codes: diagnostics.errors.map(\.code), text: diagnostics.description)
        }
        AppleProvider.validate(configuration, into: &diagnostics)
        guard !diagnostics.hasErrors else {
            throw ConfigurationRejected(codes: diagnostics.errors.map(\.code), text: diagnostics.description)
        }
        let issuer = IssuerInMemory(try document ?? Self.document())
        self.issuer = issuer
        provider = try AppleProvider(configuration, context: Self.context(issuer, store, http, logger))
    }

    static func document(_ keys: [SigningKey]? = nil) throws -> [UInt8] {
        try AppleFixture.document(try keys ?? [key.get(), otherKey.get(), ellipticKey.get()])
    }

    static let clock = Clock(unixTime: { UnixTime(seconds: now) }, monotonicTime: { MonotonicTime(nanoseconds: 1) })

    private static func context(
        _ issuer: IssuerInMemory, _ store: any SharedStoring, _ http: (any HTTPCalling)?, _ logger: Logger
    ) -> ProviderContext {
        let policy = IssuerKeysPolicy(
            ttl: .seconds(3600), maximumStale: .seconds(86_400), unknownKeyCooldown: .seconds(60),
            negativeTTL: .seconds(300),
            fetchTimeout: .seconds(3))
        let detached = ProviderContext.Services.detached(clock: clock, hasUsers: false)
        let services = ProviderContext.Services(
            clock: clock, http: http ?? detached.http, store: store, hashing: detached.hashing, users: nil)
        return ProviderContext(
            name: "apple", services: services, logger: logger, storeKeyPrefix: "test:",
            makeIssuerKeys: { url, algorithms, removed in
                IssuerKeys(
                    url: url, policy: policy, allowing: algorithms, fetcher: issuer, store: nil,
                    storeKeyPrefix: "test:",
                    clock: clock, logger: .silent, onKeysRemoved: removed)
            }, forget: {})
    }

    // MARK: - Tokens

    /// A token that is valid at `now`, changed, and signed by the first key.
    static func token(_ change: (inout Token) -> Void = { _ in }) throws -> String { try token(by: key.get(), change) }

    static func token(by key: SigningKey, _ change: (inout Token) -> Void = { _ in }) throws -> String {
        var token = Token(kid: key.identifier)
        token.claims["iat"] = JSONText(Int(now) - 100)
        token.claims["auth_time"] = JSONText(Int(now) - 101)
        token.claims["exp"] = JSONText(Int(now) + 3600)
        change(&token)
        return try token.signed(by: key)
    }

    static let context = AuthenticationContext(now: UnixTime(seconds: now), deadline: .never)

    /// The error code of a token's verification, or `nil` when it succeeds.
    func failureCode(_ token: String) async -> ErrorCode? {
        do { _ = try await identity(token) } catch { return error.code }
        return nil
    }

    func identity(_ token: String) async throws(AuthenticationError) -> Identity {
        try await provider.authenticate(Credential(bearer: Array(token.utf8)), in: Self.context)
    }

    // MARK: - Configuration

    enum Value: Sendable {
        case text(String)
        case list([String])
        case lines([Line])
        case items([[Line]])

        static func block(_ entries: [(String, Value)]) -> Value { .lines(entries.map(Line.init)) }

        static func blocks(_ blocks: [[(String, Value)]]) -> Value { .items(blocks.map { $0.map(Line.init) }) }
    }

    /// A key of a nested block.
    struct Line: Sendable {
        let name: String
        let value: Value
    }

    struct ConfigurationRejected: Error, CustomStringConvertible {
        let codes: [ErrorCode]
        let text: String

        var description: String { text }
    }

    private static func block(_ entries: [(String, Value)]) -> ConfigurationNode {
        let here = SourceLocation(file: "config.yaml", line: 1, column: 1)
        func scalar(_ text: String) -> ConfigurationNode {
            ConfigurationNode(.scalar(.init(text, isPlain: !text.isEmpty)), at: here)
        }
        return ConfigurationNode(
            .mapping(
                entries.map { name, value in
                    let node =
                        switch value {
                        case .text(let text): scalar(text)
                        case .list(let texts): ConfigurationNode(.sequence(texts.map(scalar)), at: here)
                        case .lines(let lines): block(lines.map { ($0.name, $0.value) })
                        case .items(let items):
                            ConfigurationNode(
                                .sequence(items.map { block($0.map { ($0.name, $0.value) }) }), at: here)
                        }
                    return ConfigurationNode.Entry(key: Located(name, at: here), value: node)
                }), at: here)
    }
}

/// Responds with one document and counts the requests.
final class IssuerInMemory: KeyFetching {
    private let document: Mutex<[UInt8]?>
    private let count = Mutex(0)

    init(_ document: [UInt8]) { self.document = Mutex(document) }

    var fetches: Int { count.withLock { $0 } }

    /// Responds with another document from now on; `nil` fails.
    func respond(with document: [UInt8]?) { self.document.withLock { $0 = document } }

    func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8] {
        count.withLock { $0 += 1 }
        guard let document = document.withLock({ $0 }) else { throw FetchError(code: "fetch.status", message: "503") }
        return document
    }
}
