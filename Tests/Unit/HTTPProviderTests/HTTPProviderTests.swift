import MartletConfig
import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import HTTPProvider

/// A provider with a scripted service and a clock that a test sets.
private struct Bench {
    static let now: Int64 = 1_700_000_000
    static let accepts =
        "accepts: [{ bearer_prefix: pt_ }, { header: X-Api-Key }, { basic: true }, { jwt_issuer: 'https://i' }]"

    let provider: HTTPProvider
    let service = Service()
    let log = LogRecorder()
    let time = Box<Int64>(0)

    init(_ lines: String = accepts) throws {
        let configuration = try #require(Bench.read("url: http://127.0.0.1:7000/verify?k=1\n\(lines)").configuration)
        let time = time
        let clock = Clock(
            unixTime: { UnixTime(seconds: Bench.now + time.value) },
            monotonicTime: { MonotonicTime(nanoseconds: (1_000 + time.value) * 1_000_000_000) })
        let offline = ProviderContext.Services.detached(clock: clock, hasUsers: false)
        let services = ProviderContext.Services(
            clock: clock, http: service, store: offline.store, hashing: offline.hashing, users: nil)
        let detached = ProviderContext.detached("partner", services: services)
        provider = try HTTPProvider(
            configuration,
            context: ProviderContext(
                name: "partner", services: services, logger: Logger(log, minimum: .info), storeKeyPrefix: "martlet:",
                makeIssuerKeys: { url, algorithms, _ in detached.issuerKeys(at: url, allowing: algorithms) },
                forget: {}))
    }

    static func read(_ block: String) -> (configuration: HTTPConfiguration?, lines: [String]) {
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(block.utf8), file: "c.yaml", environment: { _ in nil }, into: &diagnostics)
        let decoded = node?.decode(HTTPConfiguration.self, title: "provider 'partner'", into: &diagnostics)
        if let decoded { HTTPProvider.validate(decoded, into: &diagnostics) }
        return (diagnostics.hasErrors ? nil : decoded, diagnostics.sorted.map(\.description))
    }

    func context(
        _ facts: RequestFacts? = RequestFacts(method: "GET", host: "h", path: "/p"),
        before rest: Duration = .seconds(10)
    ) -> AuthenticationContext {
        AuthenticationContext(
            now: UnixTime(seconds: Self.now + time.value),
            deadline: MonotonicTime(nanoseconds: (1_000 + time.value) * 1_000_000_000) + rest,
            client: ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [255, 255, 192, 0, 2, 7]), request: facts)
    }

    func authenticate(
        _ token: String = "pt_1", facts: RequestFacts? = RequestFacts(method: "GET", host: "h", path: "/p"),
        before rest: Duration = .seconds(10)
    ) async -> Result<Identity, AuthenticationError> {
        do throws(AuthenticationError) {
            return .success(
                try await provider.authenticate(
                    Credential(bearer: Array(token.utf8)), in: context(facts, before: rest)))
        } catch {
            return .failure(error)
        }
    }

    func code(_ token: String = "pt_1", before rest: Duration = .seconds(10)) async -> String {
        switch await authenticate(token, before: rest) {
        case .success: "active"
        case .failure(let error): "\(error.code) \(error.disposition)"
        }
    }
}

/// Responses as scripted, and records the calls.
private final class Service: HTTPCalling {
    let scripted = Box<Result<HTTPCallResponse, HTTPCallError>>(.success(HTTPCallResponse(status: 200, body: [])))
    let calls = Box<[HTTPCall]>([])
    /// Who has as many calls under way as it may have.
    let full = Box<Set<WorkOwner>>([])

    func hasCapacity(for owner: WorkOwner) -> Bool { !full.value.contains(owner) }

    func says(_ text: String, status: Int = 200, retryAfter: Duration? = nil) {
        let response = HTTPCallResponse(status: status, body: Array(text.utf8), retryAfter: retryAfter)
        scripted.withLock { $0 = .success(response) }
    }

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        calls.withLock { $0.append(call) }
        return try scripted.value.get()
    }

    var bodies: [JSONObject] {
        calls.value.compactMap { call in
            guard case .body(let bytes, "application/json") = call.content else { return nil }
            return try? JSON.parse(bytes, limits: JSONLimits(maximumDepth: 8, maximumBytes: 1 << 20)).object
        }
    }
}

@Suite struct `A provider of kind http` {
    // MARK: Calls

    private static let credentials: [(Credential, String, String)] = [
        (Credential(bearer: Array("pt_é".utf8)), "bearer", "pt_é"),
        (Credential(bearer: Array("a.b.c".utf8)), "jwt", "a.b.c"),
        (Credential(header: Array("k\"\\ 1".utf8)), "header", "k\"\\ 1"),
        (Credential(basic: Array("YTpi".utf8)), "basic", "YTpi"),
    ]

    @Test(arguments: credentials)
    func `sends the credential, the request and its name`(
        credential: Credential, kind: String, value: String
    ) async throws {
        let bench = try Bench()
        bench.service.says(#"{"active":true,"subject":"s"}"#)
        _ = try await bench.provider.authenticate(credential, in: bench.context())
        let body = try #require(bench.service.bodies.first)
        let expected: JSONObject = [
            "credential": ["kind": .string(kind), "value": .string(value)],
            "request": ["method": "GET", "host": "h", "path": "/p", "client": "192.0.2.7"], "provider": "partner",
        ]
        #expect(body == expected)
        let call = try #require(bench.service.calls.value.first)
        #expect(call.url == "http://127.0.0.1:7000/verify?k=1" && call.socket == nil && call.isRepeatable)
        #expect(call.timeout == .seconds(1) && call.maximumBytes == 256 * 1024)
        #expect(!call.headers.contains { $0.name.hasPrefix("webhook") })
    }

    @Test func `does not send what is no text`() async throws {
        let bench = try Bench()
        let error = await #expect(throws: AuthenticationError.self) {
            try await bench.provider.authenticate(Credential(header: [0x6B, 0xFF]), in: bench.context())
        }
        #expect(error?.code == "http.not_text" && error?.disposition == .rejected)
        #expect(bench.service.calls.value.isEmpty)
    }

    @Test func `signs calls as Standard Webhooks, each with an id of its own`() async throws {
        let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        let bench = try Bench("accepts: [{ bearer_prefix: pt_ }]\nsigning_key: \(key)")
        for _ in 0..<2 { _ = await bench.authenticate() }
        var ids: Set<String> = []
        for call in bench.service.calls.value {
            guard case .body(let body, _) = call.content else { continue }
            let headers = Dictionary(uniqueKeysWithValues: call.headers.map { ($0.name, $0.value) })
            let id = try #require(headers["webhook-id"])
            ids.insert(id)
            let signer = try #require(WebhookSigner(Secret(key)))
            let expected = signer.headers(id: id, at: UnixTime(seconds: Bench.now), body: body)
            #expect(headers["webhook-signature"] == expected.last?.value)
            #expect(headers["webhook-timestamp"] == "\(Bench.now)")
        }
        #expect(ids.count == 2)
    }

    @Test func `calls a service at a Unix socket`() async throws {
        let (configuration, lines) = Bench.read("url: unix:/run/p.sock:/verify\nsign_in: true")
        #expect(configuration?.address.value.socket == "/run/p.sock" && lines.isEmpty)
        #expect(configuration?.address.value.url.text == "http://localhost/verify")
        #expect(configuration?.address.value.issuer == "unix:/run/p.sock")
        #expect(Bench.read("url: unix:/run/p.sock\nsign_in: true").configuration?.address.value.url.target == "/")
    }

    @Test func `sends the members of a login, once`() async throws {
        let bench = try Bench("sign_in: true")
        bench.service.says(#"{"active":true,"subject":"s","claims":{"a":1},"cache_for":50}"#)
        let form = SignInForm(texts: ["code": Secret("c1")], others: ["n": 7], isForm: false)
        let signIn = try await bench.provider.signIn(with: form, in: bench.context(nil))
        #expect(signIn.identity.providerSubject == "s" && signIn.identity.claims == ["a": 1])
        let body = try #require(bench.service.bodies.first)
        #expect(body["credential"] == ["kind": "sign_in", "value": ["code": "c1", "n": 7]])
        #expect(body["request"] == ["client": "192.0.2.7"])
        #expect(bench.service.calls.value.first?.isRepeatable == false && bench.provider.acceptsSignIn)
        #expect(!(try Bench().provider.acceptsSignIn))
    }

    // MARK: Responses

    @Test func `takes the identity from a response`() async throws {
        let bench = try Bench()
        bench.service.says(
            """
            {"active":true,"subject":"u-1","issuer":"https://i","claims":{"role":"admin"},
             "expires_at":\(Bench.now + 500),"auth_time":"2023-11-14T22:00:00Z","cache_for":20.9,"more":[1]}
            """)
        let identity = try await bench.authenticate().get()
        #expect(identity.providerSubject == "u-1" && identity.issuer == "https://i")
        #expect(identity.claims == ["role": "admin"] && identity.expiresAt.seconds == Bench.now + 500)
        #expect(identity.authTime.seconds == 1_699_999_200 && identity.issuedAt == identity.authTime)
        #expect(identity.reusableUntil.seconds == Bench.now + 20)
    }

    @Test(arguments: [
        ("", SubjectSource.provider), ("subject_source: account", .account), ("subject_source: provider", .provider),
        ("sign_in: true", .account), ("sign_in: true\nsubject_source: provider", .provider),
    ])
    func `a caller is an account where the configuration says so`(_ lines: String, _ source: SubjectSource) async throws
    {
        let bench = try Bench("\(Bench.accepts)\n\(lines)")
        bench.service.says(#"{"active":true,"subject":"u"}"#)
        #expect(try await bench.authenticate().get().subjectSource == source)
    }

    @Test func `without more than a subject, the service is the issuer, and nothing is reused`() async throws {
        let bench = try Bench()
        bench.service.says(#"{"active":true,"subject":"u","claims":null,"expires_at":null}"#)
        let identity = try await bench.authenticate().get()
        #expect(identity.issuer == "http://127.0.0.1:7000" && identity.claims == [:])
        #expect(identity.expiresAt.seconds == 253_402_300_799 && identity.authTime.seconds == Bench.now)
        #expect(identity.reusableUntil.seconds == Bench.now)
    }

    private static let responses: [(String, String)] = [
        (#"{"active":false}"#, "http.inactive rejected"), (#"{"active":false,"subject":7}"#, "http.inactive rejected"),
        (#"{"active":true,"subject":"s","expires_at":1699999999}"#, "http.expired rejected"),
        (#"{"active":true,"subject":"s","expires_at":1700000000}"#, "http.expired rejected"),
        (#"{"active":true,"subject":"s","expires_at":1700000001}"#, "active"),
        (#"{"active":true,"subject":"s","auth_time":1700000060}"#, "active"),
        // Not a response: nothing follows from it.
        ("", "http.bad_response unavailable"), ("<html>", "http.bad_response unavailable"),
        ("[]", "http.bad_response unavailable"), ("{}", "http.bad_response unavailable"),
        (#"{"active":"true","subject":"s"}"#, "http.bad_response unavailable"),
        (#"{"active":1,"subject":"s"}"#, "http.bad_response unavailable"),
        (#"{"active":true}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":""}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"a\nb"}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":7}"#, "http.bad_response unavailable"),
        (#"{"active":true,"active":false,"subject":"s"}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","auth_time":1700000061}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","auth_time":-1}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","expires_at":1e30}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","expires_at":"soon"}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","expires_at":99999999999999}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","claims":[]}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","issuer":""}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","cache_for":-1}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","cache_for":"60"}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","cache_for":1e999}"#, "http.bad_response unavailable"),
        (#"{"active":true,"subject":"s","cache_key":["query"]}"#, "http.bad_response unavailable"),
        (#"{"active":false,"code":"a\u0000"}"#, "http.bad_response unavailable"),
    ]

    @Test(arguments: responses)
    func `takes a response for what it says, and for an outage where it says nothing`(
        response: String, expected: String
    ) async throws {
        let bench = try Bench()
        bench.service.says(response)
        #expect(await bench.code() == expected)
        let form = SignInForm(texts: [:], others: [:], isForm: false)
        var code = "active"
        do throws(AuthenticationError) { _ = try await bench.provider.signIn(with: form, in: bench.context()) } catch {
            code = "\(error.code) \(error.disposition)"
        }
        #expect(code == expected)
    }

    @Test(arguments: [255, 256])
    func `a subject has at most 255 bytes`(count: Int) async throws {
        let bench = try Bench()
        bench.service.says(#"{"active":true,"subject":"\#(String(repeating: "a", count: count))"}"#)
        #expect(await bench.code() == (count == 255 ? "active" : "http.bad_response unavailable"))
    }

    private static let statuses: [(Int, String)] = [
        (401, "http.inactive rejected"), (403, "http.denied denied"), (429, "http.unavailable unavailable"),
        (500, "http.unavailable unavailable"), (503, "http.unavailable unavailable"),
        (599, "http.unavailable unavailable"), (201, "http.bad_response unavailable"),
        (204, "http.bad_response unavailable"), (302, "http.bad_response unavailable"),
        (400, "http.bad_request rejected"), (422, "http.bad_request rejected"), (404, "http.bad_response unavailable"),
    ]

    @Test(arguments: statuses)
    func `takes a status for what it says`(status: Int, expected: String) async throws {
        let bench = try Bench()
        bench.service.says(#"{"active":true,"subject":"s"}"#, status: status, retryAfter: .seconds(7))
        #expect(await bench.code() == expected)
        let later = await bench.authenticate().failure?.retryAfter
        #expect(later == (status == 429 || status >= 500 ? .seconds(7) : nil))
    }

    @Test func `a network that has all its calls under way is rejected before anything is done, and no other`()
        async throws
    {
        let bench = try Bench()
        let client = try #require(bench.context().client)
        let other = try #require(
            ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [255, 255, 198, 51, 100, 7]))
        #expect(bench.provider.rejection(of: client) == nil && bench.provider.rejection(ofLoginFrom: nil) == nil)
        bench.service.full.withLock { $0 = [client.workOwner] }
        for error in [bench.provider.rejection(of: client), bench.provider.rejection(ofLoginFrom: client)] {
            #expect(error?.code == "http.overloaded" && error?.disposition == .unavailable)
            #expect(error?.retryAfter == .seconds(1))
        }
        #expect(bench.provider.rejection(of: other) == nil && bench.provider.rejection(ofLoginFrom: other) == nil)
    }

    @Test(arguments: [
        ("fetch.timeout", "http.timeout"), ("fetch.unreachable", "http.unreachable"),
        ("fetch.overloaded", "http.overloaded"),
    ])
    func `a call without a response is an outage`(failure: String, code: String) async throws {
        let bench = try Bench()
        bench.service.scripted.withLock {
            $0 = .failure(HTTPCallError(code: ErrorCode(rawValue: failure), message: "m"))
        }
        #expect(await bench.code() == "\(code) unavailable")
    }

    // MARK: Reuse

    @Test func `a response is reused for the least of its time, the configured one and the credential's`() async throws
    {
        for (cache, response, expected) in [
            ("", #""cache_for":600"#, 60), ("cache: { max: 10s }", #""cache_for":600"#, 10),
            ("cache: { from_answer: false }", #""cache_for":600"#, 0), ("", #""cache_for":0"#, 0),
            ("", #""cache_for":30,"expires_at":1700000005"#, 5), ("", #""cache_for":30,"cache_key":["path"]"#, 0),
            ("cache_key: [path, host]", #""cache_for":30,"cache_key":["path"]"#, 30),
            ("cache_key: [host]", #""cache_for":30,"cache_key":["path","host"]"#, 0),
        ] {
            let bench = try Bench("\(Bench.accepts)\n\(cache)")
            bench.service.says("{\"active\":true,\"subject\":\"s\",\(response)}")
            let until = try await bench.authenticate().get().reusableUntil.seconds
            #expect(until == Bench.now + Int64(expected), "\(cache) \(response)")
        }
        #expect(try Bench("\(Bench.accepts)\ncache_key: [method, path]").provider.reuseKey == [.method, .path])
    }

    @Test func `a rejection is reused only where the service says so, and for as long`() async throws {
        let bench = try Bench()
        bench.service.says(#"{"active":false,"code":"revoked"}"#)
        for _ in 0..<2 { #expect(await bench.code() == "http.inactive rejected") }
        #expect(bench.service.calls.value.count == 2)
        bench.service.says(#"{"active":false,"cache_for":30}"#)
        for _ in 0..<3 { #expect(await bench.code() == "http.inactive rejected") }
        #expect(bench.service.calls.value.count == 3)
        #expect(await bench.code("pt_2") == "http.inactive rejected")
        #expect(bench.service.calls.value.count == 4)
        bench.time.withLock { $0 = 30 }
        bench.service.says(#"{"active":true,"subject":"s"}"#)
        #expect(await bench.code() == "active")
    }

    @Test func `a rejection depends on the parts of the request that are configured`() async throws {
        let bench = try Bench("\(Bench.accepts)\ncache_key: [path]")
        bench.service.says(#"{"active":false,"cache_for":30}"#)
        for path in ["/a", "/b", "/a"] {
            _ = await bench.authenticate(facts: RequestFacts(method: "GET", host: "h", path: path))
        }
        #expect(bench.service.calls.value.count == 2)
    }

    // MARK: The circuit

    @Test func `is not called for a while after failures in a row, and then once`() async throws {
        let bench = try Bench("\(Bench.accepts)\ncircuit: { failures: 3, open: 10s }")
        bench.service.says("", status: 500)
        for _ in 0..<3 { #expect(await bench.code() == "http.unavailable unavailable") }
        for _ in 0..<5 { #expect(await bench.code() == "http.circuit_open unavailable") }
        #expect(bench.service.calls.value.count == 3 && bench.provider.health.state == .unavailable)
        bench.time.withLock { $0 = 10 }
        #expect(await bench.code() == "http.unavailable unavailable")
        #expect(await bench.code() == "http.circuit_open unavailable")
        bench.time.withLock { $0 = 20 }
        bench.service.says(#"{"active":false}"#)
        // A rejection is a response.
        for _ in 0..<3 { #expect(await bench.code() == "http.inactive rejected") }
        #expect(bench.provider.health.state == .ready)
        bench.service.says("", status: 500)
        for _ in 0..<3 { #expect(await bench.code() == "http.unavailable unavailable") }
    }

    @Test(arguments: [400, 422])
    func `what the service cannot read is the client's error`(status: Int) async throws {
        let bench = try Bench("\(Bench.accepts)\nsign_in: true\ncircuit: { failures: 3, open: 10s }")
        let form = SignInForm(texts: [:], others: [:], isForm: false)
        bench.service.says(
            """
            {"errors":[{"pointer":"/code","code":"missing","detail":"The code is missing."},{"pointer":"/a~1b"},
             {"pointer":"no pointer"},7,{"pointer":"","code":"new","detail":"a\\u0000"}]}
            """, status: status)
        for _ in 0..<9 {
            let error = await #expect(throws: AuthenticationError.self) {
                try await bench.provider.signIn(with: form, in: bench.context(nil))
            }
            #expect(error?.code == "http.bad_request" && error?.disposition == .malformed)
            #expect(
                error?.bodyErrors == [
                    BodyError("code", .missing, detail: "The code is missing."), BodyError("a/b", .invalid),
                    BodyError([], .invalid),
                ])
        }
        bench.service.says("no JSON", status: status)
        let bare = await #expect(throws: AuthenticationError.self) {
            try await bench.provider.signIn(with: form, in: bench.context(nil))
        }
        #expect(bare?.disposition == .malformed && bare?.bodyErrors == [])
        #expect(await bench.code() == "http.bad_request rejected")
        bench.service.says(#"{"active":true,"subject":"s"}"#)
        #expect(await bench.code() == "active" && bench.provider.health.state == .ready)
    }

    /// What clients send, and how many they are, may cause each of them.
    private static let clientFailures: [Result<HTTPCallResponse, HTTPCallError>] =
        [201, 302, 400, 401, 403, 404, 413, 415, 422, 429].map { .success(HTTPCallResponse(status: $0, body: [])) }
        + ["fetch.cancelled", "fetch.overloaded", "fetch.stopped", "fetch.too_large", "fetch.cut", "fetch.redirected"]
        .map { .failure(HTTPCallError(code: ErrorCode(rawValue: $0), message: "m")) }

    @Test(arguments: clientFailures)
    func `only an outage of the service keeps others from calling it`(
        result: Result<HTTPCallResponse, HTTPCallError>
    ) async throws {
        let bench = try Bench("\(Bench.accepts)\ncircuit: { failures: 3, open: 10s }")
        bench.service.scripted.withLock { $0 = result }
        for _ in 0..<9 { #expect(await bench.code() != "http.circuit_open unavailable") }
        bench.service.says(#"{"active":true,"subject":"s"}"#)
        #expect(await bench.code() == "active")
    }

    @Test(arguments: ["fetch.timeout", "fetch.unreachable", "fetch.tls_failed", "fetch.certificate_untrusted"])
    func `a service that cannot be reached is not called for a while`(failure: String) async throws {
        let bench = try Bench("\(Bench.accepts)\ncircuit: { failures: 3, open: 10s }")
        bench.service.scripted.withLock {
            $0 = .failure(HTTPCallError(code: ErrorCode(rawValue: failure), message: "m"))
        }
        for _ in 0..<3 { _ = await bench.code() }
        #expect(await bench.code() == "http.circuit_open unavailable")
    }

    @Test func `a call that has no time left says nothing of the service`() async throws {
        let bench = try Bench("\(Bench.accepts)\ncircuit: { failures: 3, open: 10s }")
        bench.service.scripted.withLock { $0 = .failure(HTTPCallError(code: "fetch.timeout", message: "m")) }
        for _ in 0..<9 { #expect(await bench.code(before: .milliseconds(300)) == "http.timeout unavailable") }
        #expect(bench.service.calls.value.count == 9)
    }

    @Test func `logs a response that is not usable`() async throws {
        let bench = try Bench()
        bench.service.says("", status: 404)
        for _ in 0..<9 { _ = await bench.code() }
        bench.service.says("{}")
        bench.time.withLock { $0 = 10 }
        _ = await bench.code()
        #expect(
            bench.log.texts == [
                "info response of the service is not usable reason=status 404",
                "info response of the service is not usable reason=active is missing or no boolean",
            ])
    }

    // MARK: Configuration

    private static let blocks: [(String, String)] = [
        ("url: http://partner.example/\n\(Bench.accepts)", "c.yaml:1:6: error: url: must be https"),
        ("url: ftp://x\n\(Bench.accepts)", "c.yaml:1:6: error: url: must be an absolute URL"),
        ("url: unix:p.sock\n\(Bench.accepts)", "c.yaml:1:6: error: url: must be unix:"),
        ("url: https://x", "needs accepts, or sign_in: true, or both"),
        ("accepts: [{ basic: true }]", "missing key 'url'"),
        ("url: https://x\naccepts: [{}]", "needs one of bearer_prefix, header, basic, jwt_issuer"),
        ("url: https://x\naccepts: [{ basic: true, header: X-A }]", "needs one of"),
        ("url: https://x\naccepts: [{ basic: false }]", "c.yaml:2:20: error: basic: must be true, or absent"),
        (
            "url: https://x\naccepts: [{ bearer_prefix: a }, { bearer_prefix: ab }]",
            "c.yaml:2:50: error: accepts: another entry accepts the same credentials"
        ),
        (
            "url: https://x\n\(Bench.accepts)\nsigning_key: short",
            "c.yaml:3:14: error: signing_key: must be 24 to 64 bytes"
        ),
        ("url: https://x\n\(Bench.accepts)\ntimeout: 1m", "c.yaml:3:10: error: timeout"),
        ("url: https://x\n\(Bench.accepts)\ncache_key: [query]", "c.yaml:3:13: error: cache_key"),
        ("url: https://x\n\(Bench.accepts)\ncircuit: { failures: 0 }", "error: failures"),
        ("url: https://x\n\(Bench.accepts)\ncach: {}", "unknown key 'cach'"),
    ]

    @Test(arguments: blocks)
    func `names what is wrong with its block`(block: String, expected: String) {
        let (configuration, lines) = Bench.read(block)
        #expect(configuration == nil && lines.contains { $0.contains(expected) }, "\(lines)")
    }
}

@Suite struct RejectionCacheTests {
    @Test func `the oldest entries are replaced first`() {
        var cache = RejectionCache()
        let (now, end) = (MonotonicTime(nanoseconds: 1), MonotonicTime(nanoseconds: 2))
        for number in 0..<(RejectionCache.limit + 10) {
            cache.add([UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)], until: end)
        }
        #expect(cache.count == RejectionCache.limit)
        #expect(
            !cache.contains([9, 0], at: now) && cache.contains([10, 0], at: now) && !cache.contains([10, 0], at: end))
        cache.add([10, 0], until: MonotonicTime(nanoseconds: 3))
        #expect(cache.count == RejectionCache.limit && cache.contains([10, 0], at: end))
    }
}

extension Result where Failure == AuthenticationError {
    fileprivate var failure: AuthenticationError? {
        guard case .failure(let error) = self else { return nil }
        return error
    }
}
