import MartletCore
import MartletHTTP
import MartletJSON
import MartletProvider
import MartletResponder
import MartletRouter

@testable import MartletAuthenticator
@testable import MartletConfig

/// What the authenticator decided, in a form that tests can compare.
enum Decided: Equatable, Sendable {
    case authorized(consumesCredential: Bool)
    case rejected(Int, ErrorCode)
    /// The name of the provider that has to verify, or "sessions".
    case pending(by: String)
    /// The thumbprints of the key and of the certificate that a proof is needed of.
    case unproven(key: String?, certificate: String?)
}

/// An authenticator with stub providers, as a loop would use it.
struct AuthenticatorBench: ~Copyable {
    /// Accepts a kind of credential; tests supply the results.
    struct Stub: Authenticating {
        typealias Configuration = VerifierTests.Trusting.Nothing

        static let kind: ProviderKind = "stub"
        static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
        init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) { accepts = [] }
        init(_ source: CredentialSource) { accepts = [source] }

        let accepts: [CredentialSource]

        func authenticate(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> Identity { throw .rejected("stub.not_called") }
    }

    struct Sessions: SessionVerifying {
        static let accessPrefix = "mat_"

        func verify(
            _ token: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> VerifiedSession { throw .rejected("stub.not_called") }

        func inspect(
            _ token: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> VerifiedSession { throw .rejected("stub.not_called") }
    }

    static let admin = ConditionConfiguration.claim(name: "role", test: .equals(.text("admin")), inverted: false)
    static let exchange = ExchangeID(raw: 3)
    /// The first moment of every test.
    static let start = LoopTime(monotonic: 1_000_000_000_000, unix: 1_000)

    var authenticator: Authenticator
    var time = start
    /// The headers of the last request that was authorized.
    private(set) var headers = ""
    /// The names of the last request that was authorized or rejected.
    private(set) var names = ""
    /// Of the last rejection.
    private(set) var rejection: Rejection?

    init(hasSessions: Bool = true) { authenticator = Authenticator(Self.rules(hasSessions: hasSessions)) }

    /// The routes that the cases name.
    static func rules(hasSessions: Bool = true) -> AuthenticationRules {
        var unbound = route("unbound")
        unbound.upgrade.closeOnExpiry = .never
        var diagnostics = Diagnostics()
        let table = RouteTable.compile(
            [
                route("none", .none), route("optional", .optional(providers: ["tokens"])), route("required"),
                route("other", .required(providers: ["others"])),
                route("two", .required(providers: ["tokens", "others"])),
                route("basic", .required(providers: ["tokens", "passwords"])),
                route("optional basic", .optional(providers: ["tokens", "passwords"])),
                route("passwords", .required(providers: ["passwords"])),
                route("sessions", credentials: .session), route("direct", credentials: .direct),
                route("admins", authorize: [admin]),
                route("basic admins", .required(providers: ["tokens", "passwords"]), authorize: [admin]),
                route("optional admins", .optional(providers: ["tokens"]), authorize: [admin]),
                route("recent", maximumAge: .seconds(100)), unbound,
            ], mounts: [], upstreams: ["api"], providers: ["tokens", "others", "passwords"], paths: PathOptions(),
            limits: Limits(), into: &diagnostics)
        guard let table else { fatalError(diagnostics.description) }
        return AuthenticationRules(
            table,
            providers: [
                ProviderHandle(Stub(.bearerPrefix("t-")), name: "tokens"),
                ProviderHandle(Stub(.bearerPrefix("o-")), name: "others"),
                ProviderHandle(Stub(.basic), name: "passwords"),
            ],
            upstreams: ["api"], sessions: hasSessions ? Sessions() : nil, subjects: nil, assertion: nil)
    }

    private static func route(
        _ name: String, _ auth: RouteConfiguration.Authentication = .required(providers: ["tokens"]),
        credentials: CredentialKinds = [.session, .direct], authorize: [ConditionConfiguration] = [],
        maximumAge: Duration? = nil
    ) -> RouteConfiguration {
        func located(_ text: String) -> Located<String> {
            Located(text, at: SourceLocation(file: "config.yaml", line: 1, column: 1))
        }
        return RouteConfiguration(
            name: located(name), hosts: [], path: .any, methods: [], authentication: auth, credentials: credentials,
            authorize: authorize, maximumAge: maximumAge, setHeaders: nil, removeHeaders: [], stripPrefix: nil,
            bodyLimit: .inherited, forwardsCredentials: false, upstream: located("api"))
    }

    /// Index of a route.
    func index(_ name: String) -> Int {
        guard let index = authenticator.rules.table.routes.firstIndex(where: { $0.name == name }) else {
            fatalError("no route \(name)")
        }
        return index
    }

    /// Decides about a request with that value of the session cookie.
    mutating func decide(
        _ route: String, cookie: String, _ credential: inout CredentialState, result: VerificationResult? = nil
    ) -> Decided {
        let name = "Cookie: martlet="
        let bytes = Array("\(name)\(cookie)\r\n".utf8)
        let range = ByteRange(start: name.utf8.count, count: cookie.utf8.count)
        let index = index(route)
        return unsafe bytes.withUnsafeBufferPointer { bytes in
            guard let routed = RoutedRequest(exchange: Self.exchange, route: index, mount: -1) else {
                fatalError("a mount")
            }
            let outcome = unsafe authenticator.authorize(
                routed, bytes, presenting: .cookie(range), for: Samples.facts,
                result: result.map(BoxedVerificationResult.init), at: time, &credential)
            return decided(outcome)
        }
    }

    /// The same for a request of its own.
    mutating func decide(_ route: String, cookie: String, result: VerificationResult? = nil) -> Decided {
        var credential = CredentialState()
        return decide(route, cookie: cookie, &credential, result: result)
    }

    private mutating func decided(_ outcome: consuming AuthorizationOutcome) -> Decided {
        switch consume outcome {
        case .authorized(let request):
            headers = unsafe String(decoding: request.headers, as: UTF8.self)
            names = unsafe String(decoding: request.names, as: UTF8.self)
            return .authorized(consumesCredential: request.consumedCredential)
        case .rejected(let rejection):
            self.rejection = rejection
            names = unsafe String(decoding: rejection.names, as: UTF8.self)
            return .rejected(rejection.failure.status, rejection.failure.reason)
        case .pending(let request):
            switch request.target {
            case .sessions: return .pending(by: "sessions")
            case .provider(let handle): return .pending(by: handle.name)
            case .proof: return .pending(by: "proof")
            }
        case .unproven(let request):
            return .unproven(
                key: request.binding.keyThumbprint, certificate: request.binding.certificateThumbprint)
        }
    }

    /// Decides about a request with that value of `Authorization`.
    mutating func decide(
        _ route: String, _ authorization: String?, _ credential: inout CredentialState,
        result: VerificationResult? = nil
    ) -> Decided {
        let field = "Authorization: "
        let bytes = Array("\(field)\(authorization ?? "")\r\n".utf8)
        let range = authorization.map { ByteRange(start: field.utf8.count, count: $0.utf8.count) }
        let index = index(route)
        return unsafe bytes.withUnsafeBufferPointer { bytes in
            guard let routed = RoutedRequest(exchange: Self.exchange, route: index, mount: -1) else {
                fatalError("a mount")
            }
            let outcome = unsafe authenticator.authorize(
                routed, bytes, authorization: range, result: result.map(BoxedVerificationResult.init), at: time,
                &credential)
            return decided(outcome)
        }
    }

    /// The same for a request of its own.
    mutating func decide(
        _ route: String, _ authorization: String?, result: VerificationResult? = nil
    ) -> Decided {
        var credential = CredentialState()
        return decide(route, authorization, &credential, result: result)
    }

    /// Lets time pass.
    mutating func advance(seconds: Int64) {
        time = LoopTime(monotonic: time.monotonic + seconds * 1_000_000_000, unix: time.unix + seconds)
    }

    /// A verified caller.
    static func verified(
        _ subject: String = "ada", by provider: String = "tokens", role: String = "admin", expires: Int64 = 2_000,
        revocationID: UInt64 = 7, boundTo binding: CredentialBinding? = nil
    ) -> VerificationResult {
        let identity = Identity(
            providerSubject: subject, issuer: "stub", claims: JSONObject([("role", .string(role))]),
            authTime: UnixTime(seconds: 950), issuedAt: UnixTime(seconds: 950), expiresAt: UnixTime(seconds: expires),
            binding: binding)
        return .success(
            VerifiedPrincipal(
                principal: Principal(identity: identity, provider: provider, sessionID: nil),
                revocationID: revocationID, expires: expires, end: expires * 1_000))
    }
}
