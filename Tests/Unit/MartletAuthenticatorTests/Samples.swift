import MartletCore
import MartletJSON
import MartletProvider
import MartletRouter
import MartletTesting

@testable import MartletAuthenticator
@testable import MartletConfig

/// Routes, providers and callers that a test chooses, where those of ``AuthenticatorBench`` do not suffice.
enum Samples {
    static let facts = RequestFacts(method: "GET", host: "a", path: "/")

    /// Accepts credentials from several sources, and verifies none.
    struct Verifying: Authenticating {
        typealias Configuration = VerifierTests.Trusting.Nothing

        static let kind: ProviderKind = "verifying"
        static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
        init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) { accepts = [] }
        init(_ sources: [CredentialSource]) { accepts = sources }

        let accepts: [CredentialSource]

        func authenticate(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> Identity { throw .rejected("sample.not_called") }
    }

    /// Authenticates no request.
    struct Silent: Provider {
        typealias Configuration = VerifierTests.Trusting.Nothing

        static let kind: ProviderKind = "silent"
        static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
        init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}
        init() {}
    }

    private static let location = MartletConfig.SourceLocation(file: "config.yaml", line: 1, column: 1)
    /// Signs assertions.
    private static let privateKey = Result { try SigningKey("current", .p256).privatePEM() }

    // MARK: Configuration

    /// A provider that accepts credentials from these sources.
    static func handle(_ name: String, _ sources: CredentialSource...) -> ProviderHandle {
        ProviderHandle(Verifying(sources), name: name)
    }

    /// A provider that authenticates no request.
    static func silent(_ name: String) -> ProviderHandle { ProviderHandle(Silent(), name: name) }

    static func located(_ text: String) -> Located<String> { Located(text, at: location) }

    /// A route that accepts every kind of credential.
    static func route(
        _ name: String, _ authentication: RouteConfiguration.Authentication, upstream: String = "api"
    ) -> RouteConfiguration {
        RouteConfiguration(
            name: located(name), hosts: [], path: .any, methods: [], authentication: authentication,
            credentials: [.session, .direct], authorize: [], maximumAge: nil, setHeaders: nil, removeHeaders: [],
            stripPrefix: nil, bodyLimit: .inherited, forwardsCredentials: false, upstream: located(upstream))
    }

    static func mount(_ path: String) -> RouteMount {
        RouteMount(name: "own", hosts: [], path: path, location: location, bodyLimit: 1_024)
    }

    static func header(
        _ name: String, _ value: HeaderConfiguration.Value, fallback: String? = nil
    ) -> HeaderConfiguration {
        HeaderConfiguration(name: located(name), value: value, encoding: .percent, join: nil, fallback: fallback)
    }

    /// Signs assertions that expire after `ttl` seconds, and may be reused for half of that.
    static func assertion(ttl: Int64, audience: String? = nil) throws -> AssertionSigner {
        try AssertionSigner(
            AssertionConfiguration(
                header: located("X-Auth-Assertion"), issuer: "https://gw.example.com", ttl: .seconds(ttl),
                audience: audience, key: Located(Secret(try privateKey.get()), at: location), otherKeys: []))
    }

    static func rules(
        _ routes: [RouteConfiguration], providers: [ProviderHandle], upstreams: [String] = ["api"],
        mounts: [RouteMount] = [], assertion: AssertionSigner? = nil
    ) -> AuthenticationRules {
        var diagnostics = Diagnostics()
        let table = RouteTable.compile(
            routes, mounts: mounts, upstreams: upstreams, providers: providers.map(\.name), paths: PathOptions(),
            limits: Limits(), into: &diagnostics)
        guard let table else { fatalError(diagnostics.description) }
        return AuthenticationRules(
            table, providers: providers, upstreams: upstreams, sessions: AuthenticatorBench.Sessions(), subjects: nil,
            assertion: assertion)
    }

    // MARK: Callers

    /// An identity that was issued at 950.
    static func identity(
        _ subject: String = "ada", claims: JSONObject = [:], expires: Int64 = 2_000
    ) -> Identity {
        Identity(
            providerSubject: subject, issuer: "sample", claims: claims, authTime: UnixTime(seconds: 950),
            issuedAt: UnixTime(seconds: 950), expiresAt: UnixTime(seconds: expires))
    }

    /// The caller `tokens:ada`.
    static func principal(claims: JSONObject = [:], expires: Int64 = 2_000) -> Principal {
        Principal(identity: identity(claims: claims, expires: expires), provider: "tokens", sessionID: nil)
    }

    /// The same, as the result of a verification.
    static func verified(claims: JSONObject) -> VerificationResult {
        .success(
            VerifiedPrincipal(principal: principal(claims: claims), revocationID: 7, expires: 2_000, end: 2_000_000))
    }

    /// The name of the provider that has to verify, or "sessions".
    static func name(of target: Verifier.Target?) -> String? {
        switch target {
        case .provider(let handle)?: handle.name
        case .sessions?: "sessions"
        case .proof?: "proof"
        case nil: nil
        }
    }
}
