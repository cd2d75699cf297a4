import MartletConfig
import MartletCore
import MartletJOSE
import MartletProvider
import MartletProviderTesting
import MartletTesting
import Testing

@Suite struct `A partner's provider` {
    static let key = Result { try SigningKey("p1") }
    static let now = UnixTime(seconds: Int64(unixNow()))

    /// A provider whose keys come from memory; `nil` for a partner that does not respond.
    static func provider(keys: [UInt8]?) throws -> PartnerProvider {
        let text = "{ issuer: https://partner.test, audiences: [shop], keys_url: https://partner.test/keys }"
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(text.utf8), file: "config.yaml", environment: { _ in nil }, into: &diagnostics)
        let configuration = try #require(
            node?.decode(PartnerProvider.Configuration.self, title: "provider 'partner'", into: &diagnostics),
            "\(diagnostics)")
        let context = ProviderContext(
            name: "partner", services: .detached(clock: .system, hasUsers: false), logger: .silent,
            storeKeyPrefix: "test:",
            makeIssuerKeys: { url, algorithms, removed in
                let policy = IssuerKeysPolicy(
                    ttl: .seconds(3600), maximumStale: .seconds(86_400), unknownKeyCooldown: .seconds(60),
                    negativeTTL: .seconds(300), fetchTimeout: .seconds(3))
                return IssuerKeys(
                    url: url, policy: policy, allowing: algorithms, fetcher: Partner(document: keys), store: nil,
                    storeKeyPrefix: "", clock: .system, logger: .silent, onKeysRemoved: removed)
            }, forget: {})
        return try PartnerProvider(configuration, context: context)
    }

    static func authenticate(
        _ provider: PartnerProvider, _ change: (inout Token) -> Void = { _ in }
    ) async throws -> Result<
        Identity, AuthenticationError
    > {
        var token = Token(kid: "p1", subject: "customer-7")
        token.claims["iss"] = "\"https://partner.test\""
        token.claims["aud"] = "\"shop\""
        change(&token)
        let credential = Credential(bearer: Array(try token.signed(by: key.get()).utf8))
        do throws(AuthenticationError) {
            return .success(
                try await provider.authenticate(credential, in: AuthenticationContext(now: now, deadline: .never)))
        } catch {
            return .failure(error)
        }
    }

    @Test func `identifies the caller of a valid token`() async throws {
        let provider = try Self.provider(keys: AppleFixture.document([Self.key.get()]))
        #expect(try await Self.authenticate(provider).get().providerSubject == "customer-7")
    }

    @Test(arguments: [
        ("iss", "\"https://other.test\"", "partner.bad_issuer"), ("aud", "\"till\"", "partner.bad_audience"),
        ("exp", "1", "partner.expired"), ("exp", "1e400", "partner.bad_times"), ("iat", "\"now\"", "partner.bad_times"),
        ("sub", "\"\"", "partner.bad_subject"),
    ])
    func `rejects a token for the one thing that is wrong with it`(
        claim: String, value: String, code: String
    ) async throws {
        let provider = try Self.provider(keys: AppleFixture.document([Self.key.get()]))
        let result = try await Self.authenticate(provider) { $0.claims[claim] = JSONText(value) }
        guard case .failure(let error) = result else { throw TestFailure("it was accepted") }
        #expect(error.code.rawValue == code && error.disposition == .rejected)
    }

    @Test func `does not take an outage for a bad token`() async throws {
        guard case .failure(let error) = try await Self.authenticate(Self.provider(keys: nil)) else {
            throw TestFailure("it was accepted")
        }
        #expect(error.code == "partner.keys_unavailable" && error.disposition == .unavailable)
    }

    @Test func `does what the gateway expects of every provider`() async throws {
        let keys = try AppleFixture.document([Self.key.get()])
        var token = Token(kid: "p1", subject: "customer-7")
        token.claims["iss"] = "\"https://partner.test\""
        token.claims["aud"] = "\"shop\""
        var conformance = ProviderConformance(clock: .system) { try Self.provider(keys: keys) }
        conformance.accepted = [Credential(bearer: Array(try token.signed(by: Self.key.get()).utf8))]
        conformance.makeUnavailable = { try Self.provider(keys: nil) }
        let report = await conformance.run()
        #expect(report.passes, "\(report)")
    }
}

/// Gives out one document, or nothing.
private struct Partner: KeyFetching {
    let document: [UInt8]?

    func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8] {
        guard let document else { throw FetchError(code: "fetch.refused", message: "connection refused") }
        return document
    }
}
