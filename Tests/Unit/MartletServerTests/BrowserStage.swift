import Foundation
import MartletConfig
import MartletCore
import MartletHTTP2
import MartletJSON
import MartletProvider
import MartletSession
import MartletTesting

@testable import MartletServer

/// A gateway of this process with cookie sessions, before an upstream that tries to set the gateway's cookie.
final class BrowserStage: Sendable {
    static let origin = "https://app.example.com"
    static let cookie = "__Host-martlet"
    static let deletion = "__Host-martlet=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0"
    static let navigation = ("Sec-Fetch-Mode", "navigate")

    let gateway: MartletServer.Gateway
    let upstream: ScriptedUpstream
    let endpoint: Endpoint
    /// How many seconds later it is for the gateway than for the system.
    private let passed: Box<Int64>

    private init(_ gateway: MartletServer.Gateway, _ upstream: ScriptedUpstream, _ passed: Box<Int64>) throws {
        self.gateway = gateway
        self.upstream = upstream
        self.passed = passed
        guard let address = gateway.addresses.first else { throw TestFailure("the gateway does not listen") }
        endpoint = try Endpoint(text: address)
    }

    /// Starts a gateway for a test, and stops it.
    static func run(
        sessions: String = "{}", server: String = "", _ body: (BrowserStage) async throws -> Void
    ) async throws {
        let upstream = try ScriptedUpstream(respond)
        guard let null = FileHandle(forWritingAtPath: "/dev/null") else { throw TestFailure("no /dev/null") }
        let passed = Box<Int64>(0)
        let services = try Services(
            sink: LogSink(.text, descriptor: null.fileDescriptor), level: .info, clock: clock(passed))
        let gateway = try MartletServer.Gateway(blueprint(upstream, sessions, server), services: services)
        try await gateway.start()
        do {
            try await body(BrowserStage(gateway, upstream, passed))
        } catch {
            await gateway.drain()
            throw error
        }
        await gateway.drain()
        withExtendedLifetime(null) {}
    }

    private static func clock(_ passed: Box<Int64>) -> Clock {
        Clock(
            unixTime: { Clock.system.unixTime.advanced(bySeconds: passed.value) },
            monotonicTime: { Clock.system.monotonicTime + .seconds(passed.value) },
            unixMilliseconds: { Clock.system.unixMilliseconds + passed.value * 1000 })
    }

    /// Lets time pass for the gateway.
    func advance(bySeconds seconds: Int64) { passed.withLock { $0 += seconds } }

    private static let respond: ScriptedUpstream.Script = { exchange in
        let fields = [
            ("Set-Cookie", "theme=dark"), ("SET-COOKIE", "\(cookie)=forged; Path=/; Secure"),
            ("Set-Cookie", "\(cookie)-start=forged"),
        ]
        guard exchange.request["Upgrade"] != nil else {
            return try exchange.respond(200, fields, body: exchange.request["X-Auth-Subject"] ?? "-")
        }
        // The key is that of RFC 6455 §1.3.
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        try exchange.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\(lines)\r\n")
        _ = exchange.waitForEnd()
    }

    private static func blueprint(
        _ upstream: ScriptedUpstream, _ sessions: String, _ server: String
    ) throws -> Blueprint {
        let text = """
            version: 1
            server: { listen: [{ address: "127.0.0.1:0" }], workers: 1, timeouts: { drain: 1s }\(server) }
            browser: { origin: \(origin) }
            sessions: \(sessions)
            rate_limits: { once: { key: address, rate: 1/h, burst: 1 } }
            providers:
              pass: { kind: pass, prefix: pass_ }
              other: { kind: pass, prefix: other_ }
              basic: { kind: named }
            upstreams: { app: { endpoints: ["\(upstream.url)"] }, gone: { endpoints: ["http://127.0.0.1:1"] } }
            routes:
              - { name: public, match: { path: /public/** }, auth: none, upstream: app }
              - { name: optional, match: { path: /optional/** }, auth: { mode: optional }, upstream: app }
              - { name: api, match: { path: /api/** }, auth: { browser: never }, upstream: app }
              - { name: direct, match: { path: /direct/** }, auth: { credentials: [direct] }, upstream: app }
              - { name: other, match: { path: /other/** }, auth: { providers: [other] }, upstream: app }
              - { name: basic, match: { path: /basic/** }, auth: { providers: [basic] }, upstream: app }
              - { name: gone, match: { path: /gone/** }, auth: none, upstream: gone }
              - name: limited
                match: { path: /limited/** }
                auth: none
                limits: { rate: [once] }
                upstream: app
              - name: staff
                match: { path: /staff/** }
                auth: { providers: [pass] }
                authorize: [{ claim: staff, equals: true }]
                upstream: app
              - { name: fresh, match: { path: /fresh/** }, authorize: [{ max_age: 1s }], upstream: app }
              - { name: app, upstream: app }

            """
        var registry = ProviderRegistry()
        registry.register(PassProvider.self)
        registry.register(NamedProvider.self)
        let (blueprint, diagnostics) = Blueprint.read(
            text: text, name: "gw.yaml", registry: registry, environment: { _ in nil })
        guard let blueprint else { throw TestFailure("\(diagnostics.sorted)") }
        return blueprint
    }

    // MARK: Sessions

    /// Begins a session of `ada`, and returns its cookie's value.
    func signIn(authenticated secondsAgo: Int64 = 0, claims: JSONObject = [:]) async throws -> String {
        let now = gateway.services.clock.unixTime
        let identity = Identity(
            providerSubject: "ada", issuer: "pass", claims: claims, authTime: now.advanced(bySeconds: -secondsAgo),
            issuedAt: now.advanced(bySeconds: -secondsAgo), expiresAt: now.advanced(bySeconds: 3_600))
        let issued = try await gateway.graph.sessions.createCookie(
            subject: "ada", provider: "pass", identity: identity, client: SessionClient(), evicting: true, mark: nil)
        return issued.token.withBytes { String(decoding: $0, as: UTF8.self) }
    }

    func end(_ cookie: String) async throws {
        try await gateway.graph.sessions.endSession(withCookie: Secret(cookie), reporting: nil)
    }

    static func field(_ cookie: String) -> (String, String) { ("Cookie", "\(Self.cookie)=\(cookie)") }

    // MARK: Requests

    /// Sends a request on a connection of its own.
    func ask(_ method: String, _ target: String, _ fields: [(String, String)] = []) async throws -> HTTPMessage {
        let endpoint = endpoint
        return try await onOwnThread {
            let client = try HTTPClient(to: endpoint)
            defer { client.close() }
            return try client.exchange(method, target, fields)
        }
    }

    func get(_ target: String, _ fields: (String, String)...) async throws -> HTTPMessage {
        try await ask("GET", target, fields)
    }

    /// The head of the response to a request over HTTP/2, as lines.
    func getByHTTP2(_ target: String, _ fields: (String, String)...) async throws -> [String] {
        let endpoint = endpoint
        return try await onOwnThread { try Self.exchange(target, fields, endpoint) }
    }

    private static func exchange(
        _ target: String, _ fields: [(String, String)], _ endpoint: Endpoint
    ) throws -> [String] {
        let socket = try RawSocket(connectingTo: endpoint)
        let session = try HTTP2Session.client(HTTP2Options())
        defer {
            session.free()
            socket.close()
        }
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        let head = Array("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\(lines)\r\n".utf8)
        _ = unsafe head.withUnsafeBufferPointer { unsafe session.submitRequest($0, isSecure: false, ends: true) }
        while true {
            while session.hasOutput {
                var output = ByteBuffer()
                session.takeOutput(into: &output, upTo: 65_536)
                try socket.send(output.array)
            }
            let bytes = try socket.receive()
            guard !bytes.isEmpty else { throw TestFailure("the connection is over") }
            _ = unsafe bytes.withUnsafeBufferPointer { unsafe session.receive($0, now: 0) }
            while let event = session.nextEvent() {
                guard case .head(let stream, _) = event else { continue }
                var text = ByteBuffer()
                session.takeHead(stream, into: &text)
                return String(decoding: text.array, as: UTF8.self).components(separatedBy: "\r\n")
            }
        }
    }
}

/// A provider whose credentials no test has.
private struct PassProvider: Authenticating {
    struct Configuration: ConfigurationDecodable {
        let prefix: String

        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            prefix = try reader.required("prefix")
        }
    }

    static let kind: ProviderKind = "pass"
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
    let accepts: [CredentialSource]

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        accepts = [.bearerPrefix(configuration.prefix)]
    }

    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity { throw .rejected("pass.unknown") }
}

/// A provider of names and passwords, none of which is valid.
private struct NamedProvider: Authenticating {
    struct Configuration: ConfigurationDecodable {
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    static let kind: ProviderKind = "named"
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
    let accepts: [CredentialSource] = [.basic]

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}

    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity { throw .rejected("named.unknown") }
}
