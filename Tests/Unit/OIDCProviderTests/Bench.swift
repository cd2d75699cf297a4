import MartletConfig
import MartletCore
import MartletJOSE
import MartletProvider
import MartletTesting
import OIDCProvider
import Testing

/// A provider with a simulated issuer in memory.
struct Bench {
    static let now: Int64 = 1_800_000_000
    static let issuer = "https://issuer.example"
    static let key = Result { try SigningKey("RSA1") }
    static let otherKey = Result { try SigningKey("RSA2") }
    static let curves = Result {
        try [("EC256", SigningKey.Kind.p256), ("EC384", .p384), ("EC521", .p521), ("ED", .ed25519)].map {
            try SigningKey($0.0, $0.1)
        }
    }

    let provider: OIDCProvider
    let issuer: ScriptedIssuer
    let time: TestTime

    /// - Parameters:
    ///   - yaml: the provider's block; by default a discovered issuer whose tokens are for `api`.
    ///   - store: the store of codes, nonces and copies.
    init(
        _ yaml: String = "issuer: https://issuer.example\naudiences: [api]", issuer: ScriptedIssuer? = nil,
        time: TestTime = TestTime(), store: (any SharedStoring)? = nil, logger: Logger = .silent
    ) throws {
        let configuration = try Self.configuration(yaml)
        self.time = time
        let issuer = if let issuer { issuer } else { try ScriptedIssuer() }
        self.issuer = issuer
        provider = try OIDCProvider(configuration, context: Self.context(issuer, time, store, logger))
    }

    /// A provider that has started.
    static func started(
        _ yaml: String = "issuer: https://issuer.example\naudiences: [api]", issuer: ScriptedIssuer? = nil,
        store: (any SharedStoring)? = nil
    ) async throws -> Bench {
        let bench = try Bench(yaml, issuer: issuer, store: store)
        await bench.provider.start()
        return bench
    }

    static func configuration(_ yaml: String) throws -> OIDCConfiguration {
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(yaml.utf8), file: "config.yaml", environment: { _ in nil }, into: &diagnostics)
        let configuration = node?.decode(OIDCConfiguration.self, title: "provider 'oidc'", into: &diagnostics)
        if let configuration { OIDCProvider.validate(configuration, into: &diagnostics) }
        guard let configuration, !diagnostics.hasErrors else {
            throw ConfigurationRejected(codes: diagnostics.errors.map(\.code), text: diagnostics.description)
        }
        return configuration
    }

    struct ConfigurationRejected: Error, CustomStringConvertible {
        let codes: [ErrorCode]
        let text: String

        var description: String { text }
    }

    private static func context(
        _ issuer: ScriptedIssuer, _ time: TestTime, _ store: (any SharedStoring)?, _ logger: Logger
    ) -> ProviderContext {
        let policy = IssuerKeysPolicy(
            ttl: .seconds(3600), maximumStale: .seconds(86_400), unknownKeyCooldown: .seconds(60),
            negativeTTL: .seconds(300), fetchTimeout: .seconds(3))
        let clock = time.clock
        let detached = ProviderContext.Services.detached(clock: clock, hasUsers: false)
        let services = ProviderContext.Services(
            clock: clock, http: issuer, store: store ?? detached.store, hashing: detached.hashing, users: nil)
        return ProviderContext(
            name: "oidc", services: services, logger: logger, storeKeyPrefix: "test:",
            makeIssuerKeys: { url, algorithms, removed in
                IssuerKeys(
                    url: url, policy: policy, allowing: algorithms, fetcher: issuer, store: nil,
                    storeKeyPrefix: "test:", clock: clock, logger: .silent, onKeysRemoved: removed)
            }, forget: { issuer.forget() })
    }

    // MARK: - Tokens

    static func token(_ change: (inout Token) -> Void = { _ in }) throws -> String { try token(by: key.get(), change) }

    /// A token that is valid at `now`, changed, and signed.
    static func token(by key: SigningKey, _ change: (inout Token) -> Void = { _ in }) throws -> String {
        var token = Token(kid: key.identifier)
        token.header["alg"] = JSONText(string: key.kind.algorithm)
        token.claims = [
            "iss": JSONText(string: issuer), "aud": "\"api\"", "sub": "\"user-1\"", "iat": JSONText(Int(now) - 100),
            "exp": JSONText(Int(now) + 3600),
        ]
        change(&token)
        return try token.signed(by: key)
    }

    var context: AuthenticationContext {
        AuthenticationContext(
            now: UnixTime(seconds: Self.now), deadline: time.clock.monotonicTime + .seconds(10), purpose: .request)
    }

    func identity(_ token: String) async throws(AuthenticationError) -> Identity {
        try await provider.authenticate(Credential(bearer: Array(token.utf8)), in: context)
    }

    /// The error code of a token's verification, or `nil` when it succeeds.
    func failureCode(_ token: String) async -> ErrorCode? { await failure(token)?.code }

    func failure(_ token: String) async -> AuthenticationError? {
        do { _ = try await identity(token) } catch { return error }
        return nil
    }
}

/// Time as a test sets it.
final class TestTime: Sendable {
    private let monotonic = Box<Int64>(1)

    func advance(_ span: Duration) { monotonic.withLock { $0 += span.wholeNanoseconds } }

    var clock: Clock {
        Clock(
            unixTime: { UnixTime(seconds: Bench.now) },
            monotonicTime: { [monotonic] in MonotonicTime(nanoseconds: monotonic.value) })
    }
}
