import MartletCore
import MartletHTTP
import MartletJSON
import MartletProvider
import MartletResponder
import MartletRouter
import Testing

@testable import MartletAuthenticator
@testable import MartletConfig

/// Credentials in headers of their own, and decisions that depend on the request.
@Suite struct HeaderCredentialTests {
    /// A provider whose decisions depend on parts of the request.
    private struct Inspecting: RequestInspecting {
        typealias Configuration = VerifierTests.Trusting.Nothing

        static let kind: ProviderKind = "inspecting"
        static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
        init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
            (accepts, reuseKey) = ([], [])
        }
        init(_ accepts: [CredentialSource], by reuseKey: Set<RequestPart>) {
            (self.accepts, self.reuseKey) = (accepts, reuseKey)
        }

        let accepts: [CredentialSource]
        let reuseKey: Set<RequestPart>

        func authenticate(
            _ credential: Credential, in context: AuthenticationContext
        ) async throws(AuthenticationError) -> Identity { throw .rejected("inspecting.not_called") }
    }

    private struct Head {
        let bytes: [UInt8]
        let fields: [HeadField]
        let authorization: ByteRange?

        init(_ lines: [String]) {
            let text = (["GET / HTTP/1.1", "Host: a"] + lines + ["", ""]).joined(separator: "\r\n")
            let bytes = Array(text.utf8)
            var head = RequestHead(maximumFields: 64)
            var parser = RequestParser(maximumHeadBytes: 8_192)
            _ = parser.parse(bytes.span, into: &head)
            var found: [HeadField] = []
            for index in 0..<head.fields.count { found.append(head.fields[index]) }
            self.bytes = bytes
            fields = found
            authorization = head.authorization >= 0 ? found[head.authorization].value : nil
        }
    }

    private static let providers = [
        Samples.handle("tokens", .bearerPrefix("t-")),
        Samples.handle("keys", .header("X-Api-Key"), .bearerPrefix("k-")),
        Samples.handle("partners", .header("X-Partner")),
        ProviderHandle(
            Inspecting([.header("X-Path"), .bearerPrefix("p-"), .basic], by: [.path, .method]), name: "paths"),
        ProviderHandle(Inspecting([.header("X-Any"), .bearerPrefix("a-")], by: []), name: "any"),
        Samples.handle("signed", .messageSignature),
    ]

    private static let rules = Samples.rules(
        [
            Samples.route("tokens", .required(providers: ["tokens"])),
            Samples.route("keys", .required(providers: ["tokens", "keys"])),
            Samples.route("both", .required(providers: ["keys", "partners"])),
            Samples.route("optional", .optional(providers: ["keys"])), Samples.route("none", .none),
            Samples.route("paths", .required(providers: ["paths"])),
            Samples.route("any", .required(providers: ["any"])),
            Samples.route("signed", .required(providers: ["signed"])),
        ], providers: providers)

    /// An authenticator, as a loop would use it for whole heads.
    private struct Loop: ~Copyable {
        var authenticator = Authenticator(HeaderCredentialTests.rules)
        var credential = CredentialState()
        var pendingValue = ""
        var pendingScheme: Credential.Scheme?

        mutating func decide(
            _ route: String, _ lines: [String], facts: RequestFacts = RequestFacts(method: "GET", host: "a", path: "/"),
            result: VerificationResult? = nil, at time: LoopTime = AuthenticatorBench.start
        ) -> Decided {
            credential = CredentialState()
            let head = Head(lines)
            guard let index = authenticator.rules.table.routes.firstIndex(where: { $0.name == route }) else {
                return .rejected(0, "no.route")
            }
            var search = HeaderSearch(authenticator.rules, route: index)
            for (index, field) in head.fields.enumerated() {
                search.examine(field, at: index, in: head.bytes.span, authenticator.rules)
            }
            let header: HeaderSearch.Found?
            do throws(Failure) { header = try search.result(hasAuthorization: head.authorization != nil) } catch {
                return .rejected(error.status, error.reason)
            }
            let boxed = result.map(BoxedVerificationResult.init)
            return unsafe head.bytes.withUnsafeBufferPointer { bytes in
                guard let routed = RoutedRequest(exchange: AuthenticatorBench.exchange, route: index, mount: -1) else {
                    return .rejected(0, "no.route")
                }
                let presented: RequestCredential =
                    header.map { .header($0) } ?? head.authorization.map { .authorization($0) } ?? .none
                let outcome = unsafe authenticator.authorize(
                    routed, bytes, presenting: presented, for: facts, result: boxed, at: time, &credential)
                return decided(outcome)
            }
        }

        private mutating func decided(_ outcome: consuming AuthorizationOutcome) -> Decided {
            switch consume outcome {
            case .authorized(let request): return .authorized(consumesCredential: request.consumedCredential)
            case .rejected(let rejection): return .rejected(rejection.failure.status, rejection.failure.reason)
            case .pending(let request):
                pendingValue = request.credential.withBytes { String(decoding: $0, as: UTF8.self) }
                pendingScheme = request.credential.scheme
                return .pending(by: Samples.name(of: request.target) ?? "")
            case .unproven: return .unproven(key: nil, certificate: nil)
            }
        }
    }

    private static let twice = Decided.rejected(400, "auth.two_credentials")
    private static let refused = Decided.rejected(401, "auth.header_not_accepted")
    private static let missing = Decided.rejected(401, "auth.credential_missing")

    private static let cases: [(String, [String], Decided)] = [
        ("keys", ["X-Api-Key: secret"], .pending(by: "keys")), ("keys", ["x-aPI-key: secret"], .pending(by: "keys")),
        ("keys", ["Authorization: Bearer t-1"], .pending(by: "tokens")),
        ("keys", ["Authorization: Bearer k-1"], .pending(by: "keys")), ("keys", [], missing),
        // Another field name, however similar.
        ("keys", ["X_Api_Key: secret"], missing), ("keys", ["X-Api-Key2: secret"], missing),
        ("keys", ["X-Partner: secret"], missing), ("both", ["X-Partner: secret"], .pending(by: "partners")),
        ("signed", ["Signature-Input: sig=()", "Signature: sig=:AA==:"], .pending(by: "signed")),
        ("signed", ["Signature: sig=:AA==:"], missing), ("keys", ["Signature-Input: sig=()"], missing),
        ("signed", ["Signature-Input: sig=()", "signature-input: sig=()"], twice),
        ("signed", ["Signature-Input: sig=()", "Authorization: Bearer t-1"], twice),
        // Two credentials may be those of two callers.
        ("keys", ["X-Api-Key: secret", "Authorization: Bearer t-1"], twice),
        ("keys", ["Authorization: Bearer mat_1", "X-Api-Key: secret"], twice),
        ("keys", ["X-Api-Key: secret", "X-Api-Key: secret"], twice), ("keys", ["X-Api-Key: ", "x-api-key: a"], twice),
        ("both", ["X-Api-Key: secret", "X-Partner: secret"], twice),
        // A session elsewhere than in Authorization.
        ("keys", ["X-Api-Key: mat_1"], refused), ("keys", ["X-Api-Key: Bearer mrt_1"], refused),
        ("keys", ["X-Api-Key:"], refused), ("optional", ["X-Api-Key:"], refused),
        // Routes without the provider do not look at the header.
        ("tokens", ["X-Api-Key: secret", "Authorization: Bearer t-1"], .pending(by: "tokens")),
        ("tokens", ["X-Api-Key: secret"], missing),
        ("none", ["X-Api-Key: mat_1"], .authorized(consumesCredential: false)),
        ("optional", ["X-Api-Key: secret"], .pending(by: "keys")),
        ("optional", [], .authorized(consumesCredential: false)),
    ]

    @Test(arguments: cases)
    func `a header of its own is the only credential of a request`(
        route: String, lines: [String], expected: Decided
    ) {
        var loop = Loop()
        let decided = loop.decide(route, lines)
        #expect(decided == expected)
        if decided == .pending(by: "keys"), lines.first?.lowercased().hasPrefix("x-api") == true {
            #expect(loop.pendingScheme == .header && loop.pendingValue == "secret")
        }
    }

    @Test func `is decided from the cache, apart from tokens and other headers of the same bytes`() {
        var loop = Loop()
        let verified = AuthenticatorBench.verified(by: "keys")
        let allowed = Decided.authorized(consumesCredential: true)
        #expect(loop.decide("both", ["X-Api-Key: t-1"], result: verified) == allowed)
        #expect(loop.decide("both", ["X-Api-Key: t-1"]) == allowed)
        #expect(loop.decide("both", ["X-Partner: t-1"]) == .pending(by: "partners"))
        #expect(loop.decide("keys", ["Authorization: Bearer t-1"]) == .pending(by: "tokens"))
    }

    @Test func `its token is retained for a long exchange, and verified again as a header`() {
        var loop = Loop()
        _ = loop.decide("keys", ["X-Api-Key: secret"], result: AuthenticatorBench.verified(by: "keys"))
        let exchange = AuthenticatorBench.exchange
        loop.authenticator.retainToken(of: exchange, &loop.credential)
        #expect(loop.credential.retainsToken && !loop.authenticator.retainsSession(of: exchange))
        loop.authenticator.revalidate(exchange, for: 1, at: 0)
        let due = loop.authenticator.dueRevalidations(at: AuthenticatorBench.start)
        #expect(due.count == 1 && due.first?.credential.scheme == .header)
        #expect(due.first?.credential.withBytes { $0 } == Array("secret".utf8))
        #expect(Samples.name(of: due.first?.target) == "keys")
    }

    // MARK: Decisions by the request

    private static let credentials: [[String]] = [
        ["X-Path: x"], ["Authorization: Bearer p-1"], ["Authorization: Basic YTpi"],
    ]

    @Test(arguments: credentials)
    func `a decision is reused only for requests with the parts that it depends on`(lines: [String]) {
        var loop = Loop()
        let allowed = Decided.authorized(consumesCredential: true)
        let verified = AuthenticatorBench.verified(by: "paths")
        func facts(_ method: String, _ host: String, _ path: String) -> RequestFacts {
            RequestFacts(method: method, host: host, path: path)
        }
        #expect(loop.decide("paths", lines, facts: facts("GET", "a", "/x")) == .pending(by: "paths"))
        #expect(loop.decide("paths", lines, facts: facts("GET", "a", "/x"), result: verified) == allowed)
        #expect(loop.decide("paths", lines, facts: facts("GET", "a", "/x")) == allowed)
        // The host is not among them.
        #expect(loop.decide("paths", lines, facts: facts("GET", "b", "/x")) == allowed)
        #expect(loop.decide("paths", lines, facts: facts("GET", "a", "/y")) == .pending(by: "paths"))
        #expect(loop.decide("paths", lines, facts: facts("POST", "a", "/x")) == .pending(by: "paths"))
        // What ends one part does not begin the next.
        #expect(loop.decide("paths", lines, facts: facts("GET/", "a", "x")) == .pending(by: "paths"))
        // The digest that it is cached under cannot be verified again.
        _ = loop.decide("paths", lines, facts: facts("GET", "a", "/x"))
        #expect(loop.credential.decision == -1)
    }

    @Test func `a decision that depends on the credential alone is reused for every request`() {
        var loop = Loop()
        let verified = AuthenticatorBench.verified(by: "any")
        let other = RequestFacts(method: "PUT", host: "b", path: "/z")
        for lines in [["X-Any: x"], ["Authorization: Bearer a-1"]] {
            #expect(loop.decide("any", lines, result: verified) == .authorized(consumesCredential: true))
            #expect(loop.decide("any", lines, facts: other) == .authorized(consumesCredential: true))
        }
    }

    @Test(arguments: [(nil, true), (1_500, true), (1_001, true), (1_000, false), (0, false)] as [(Int64?, Bool)])
    func `a result is reused as long as its provider allows, and not at all where that has passed`(
        until: Int64?, isReused: Bool
    ) {
        var loop = Loop()
        let identity = Identity(
            providerSubject: "ada", issuer: "i", claims: [:], authTime: UnixTime(seconds: 900),
            issuedAt: UnixTime(seconds: 900), expiresAt: UnixTime(seconds: 2_000),
            reusableUntil: until.map { UnixTime(seconds: $0) })
        let result = VerificationResult.success(Self.providers[1].principal(of: identity))
        #expect(loop.decide("keys", ["X-Api-Key: a"], result: result) == .authorized(consumesCredential: true))
        #expect(loop.credential.end == 2_000_000)
        let next = loop.decide("keys", ["X-Api-Key: a"])
        #expect(next == (isReused ? .authorized(consumesCredential: true) : .pending(by: "keys")))
        let later = LoopTime(monotonic: AuthenticatorBench.start.monotonic, unix: until ?? 2_000)
        #expect(loop.decide("keys", ["X-Api-Key: a"], at: later) == .pending(by: "keys"))
    }

    @Test func `a result is never reusable after its credential has expired`() {
        let identity = Identity(
            providerSubject: "ada", issuer: "i", claims: [:], authTime: UnixTime(seconds: 0),
            issuedAt: UnixTime(seconds: 0), expiresAt: UnixTime(seconds: 10), reusableUntil: UnixTime(seconds: 20))
        #expect(identity.reusableUntil == UnixTime(seconds: 10))
        let claims = AccountClaims(account: ["a": "b"])
        let shorter = Identity(
            providerSubject: "ada", issuer: "i", claims: [:], authTime: UnixTime(seconds: 0),
            issuedAt: UnixTime(seconds: 0), expiresAt: UnixTime(seconds: 10), reusableUntil: UnixTime(seconds: 5))
        #expect(shorter.adding(claims, provider: "p").reusableUntil == UnixTime(seconds: 5))
    }

    @Test func `both fields of a signature are removed where it is a credential`() throws {
        let routes = Self.rules.table.routes
        func names(_ route: String) throws -> [String] {
            Self.rules.headerNames(on: try #require(routes.firstIndex { $0.name == route }))
        }
        #expect(try names("signed") == ["signature-input", "signature"])
        #expect(try names("keys") == ["x-api-key"])
    }
}
