import MartletCore
import MartletDecisionsTesting
import MartletHTTP
import MartletProvider
import MartletRouter
import MartletTesting
import Testing

@testable import MartletConfig
@testable import MartletDecisions
@testable import MartletExplain

/// Accepts every credential of a kind; a token is bound to a key.
private struct Trusting: Authenticating {
    struct Configuration: ConfigurationDecodable {
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    static let kind: ProviderKind = "trusting"
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    let accepts: [CredentialSource]

    init(_ source: CredentialSource) { accepts = [source] }

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) { self.init(.basic) }

    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        Identity(
            providerSubject: "ada", issuer: "test", authTime: context.now, issuedAt: context.now,
            expiresAt: context.now.advanced(bySeconds: 60), binding: CredentialBinding(keyThumbprint: "jkt"))
    }
}

/// What is explained about a request, as the loop decides about it.
@Suite struct ExplanationTests {
    private static let somewhere = SourceLocation(file: "config.yaml", line: 1, column: 1)

    private static let settings: SampleSettings = {
        var settings = SampleSettings()
        settings.browser = .sample
        settings.providers = ["tokens", "passwords"]
        settings.handles = [
            "tokens": ProviderHandle(Trusting(.bearerPrefix("t-")), name: "tokens"),
            "passwords": ProviderHandle(Trusting(.basic), name: "passwords"),
        ]
        var closed = SampleSettings.route("closed")
        closed.authentication = .required(providers: ["tokens"])
        closed.crossOrigin = CrossOriginConfiguration(origins: [.exact("https://a.test")])
        var either = SampleSettings.route("either")
        either.authentication = .required(providers: ["tokens", "passwords"])
        var open = SampleSettings.route("open")
        open.crossOrigin = closed.crossOrigin
        open.bodyLimit = .bytes(10)
        var moved = SampleSettings.route("moved")
        moved.stripPrefix = Located("/moved", at: somewhere)
        settings.routes = [closed, either, open, moved]
        return settings
    }()

    private func explain(
        _ line: String, _ fields: [String] = [], listener: ExplainedListener = ExplainedListener()
    ) async -> RequestExplanation {
        let words = line.split(separator: " ").map(String.init)
        let request = ExplainedRequest(
            method: words[0], target: words[1], host: "app.example.com", fields: fields.map { Secret(Array($0.utf8)) },
            token: nil, listener: listener)
        return await RequestExplainer(Self.settings.snapshot(), clock: .system).explain(request)
    }

    /// Status and reason of a rejection, else the outcome.
    private func outcome(_ explanation: RequestExplanation) -> String {
        switch explanation.outcome {
        case .forwarded: "forwarded"
        case .answeredLocally: "served here"
        case .responded(let status, _): "responded \(status)"
        case .preflight: "preflight"
        case .refused(let response), .undecidable(let response, _): "\(response.status) \(response.reason)"
        }
    }

    @Test(arguments: [
        ("Cookie: a=1; __Host-martlet=mct_x; b=2", []), ("Cookie: __Host-martlet=mct_x", ["Cookie"]),
        ("Cookie: a=1", []), ("Authorization: Basic x", []), ("X-Kept: 1", []), ("Via: 1.1 other", []),
        ("Content-Length: 2", []), ("X-Forwarded-For: 9.9.9.9", ["X-Forwarded-For"]),
        ("Authorization: Bearer mat_\(String(repeating: "A", count: 75))", ["Authorization"]),
        ("X-Token: mat_\(String(repeating: "A", count: 75))", ["X-Token"]),
    ])
    func `the fields that the upstream does not get`(_ field: String, _ removed: [String]) async {
        for path in ["/api/x", "/moved/%78"] {
            let explanation = await explain("POST \(path)", [field])
            #expect(outcome(explanation) == "forwarded")
            #expect(explanation.removedFields == removed, "\(path)")
        }
    }

    @Test func `a route that restricts methods gets no other one in a header`() async {
        for (path, removed) in [("/api/x", []), ("/read/x", ["X-HTTP-Method-Override"])] {
            let explanation = await explain("GET \(path)", ["X-HTTP-Method-Override: DELETE"])
            #expect(explanation.removedFields == removed, "\(path)")
        }
    }

    @Test func `a cookie that is of no use is deleted on routes without callers, too`() async {
        let explanation = await explain("POST /open/x", ["Cookie: __Host-martlet=a; __Host-martlet=b"])
        #expect(outcome(explanation) == "forwarded")
        #expect(explanation.setCookies.map { $0.prefix(15) } == ["__Host-martlet="])
        #expect(explanation.removedFields == ["Cookie"])
    }

    @Test(arguments: [("/closed/x", [], 1), ("/either/x", [], 2), ("/either/x", ["Sec-Fetch-Mode: cors"], 1)])
    func `a token without its proof is offered Basic where the route accepts it`(
        _ path: String, _ fields: [String], _ count: Int
    ) async {
        let explanation = await explain("GET \(path)", ["Authorization: DPoP t-1"] + fields)
        #expect(outcome(explanation) == "401 auth.proof_missing")
        guard case .refused(let response) = explanation.outcome else { return }
        #expect(response.challenges.count == count, "\(response.challenges)")
    }

    @Test func `a request that this gateway has forwarded is rejected`() async {
        let own = "Via: 1.1 \(Self.settings.snapshot().pseudonym.text)"
        #expect(outcome(await explain("GET /api/x", [own])) == "508 request.loop_detected")
    }

    @Test func `a preflight is within the limits of its route`() async {
        let fields = ["Origin: https://a.test", "Access-Control-Request-Method: GET"]
        #expect(outcome(await explain("OPTIONS /open/x", fields)) == "preflight")
        let large = await explain("OPTIONS /open/x", fields + ["Content-Length: 11"])
        #expect(outcome(large) == "413 request.body_too_large")
        #expect(large.route?.name == "open")
    }

    @Test func `a page may read more of the gateway's own responses`() async {
        let (allowed, vary) = ("Access-Control-Allow-Origin: https://a.test", "Vary: Origin")
        let own = "Access-Control-Expose-Headers: Retry-After, WWW-Authenticate, X-Request-Id"
        let forwarded = await explain("GET /open/x", ["Origin: https://a.test"])
        #expect(forwarded.crossOriginFields == [allowed, vary])
        let rejected = await explain("GET /closed/x", ["Origin: https://a.test"])
        #expect(outcome(rejected) == "401 auth.credential_missing")
        #expect(rejected.crossOriginFields == [allowed, own, vary])
        let preflight = await explain(
            "OPTIONS /open/x", ["Origin: https://a.test", "Access-Control-Request-Method: GET"])
        #expect(preflight.crossOriginFields.starts(with: [allowed, own, vary]))
        #expect(await explain("GET /closed/x", ["Origin: https://b.test"]).crossOriginFields == [vary])
    }

    @Test(arguments: [
        ("OPTIONS *", "404 router.no_route"), ("TRACE /api/x", "405 router.method_not_allowed"),
        ("get /read/x", "400 request.method_case"),
    ])
    func `an uncommon method or target`(_ line: String, _ expected: String) async {
        #expect(outcome(await explain(line)) == expected)
    }

    @Test func `the listener responds to health checks before everything else`() async {
        var configuration = ListenerConfiguration(
            address: Located(.ip(host: "127.0.0.1", port: 80), at: Self.somewhere), reusePort: false)
        configuration.health = HealthPath(path: "/closed/health")
        configuration.redirectsToHTTPSPort = 443
        let server = ServerConfiguration(
            listeners: [configuration], trustedProxies: [], limits: Limits(), paths: PathOptions(),
            timeouts: ServerTimeouts())
        let listener = ExplainedListener(of: server, scheme: "http")
        let health = await explain("PUT /closed/health?a=b", listener: listener)
        #expect(outcome(health) == "served here" && health.path == "/closed/health" && health.route == nil)
        #expect(outcome(await explain("GET /closed/health%78", listener: listener)) == "308 server.moved_to_https")
    }
}
