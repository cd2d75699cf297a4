import MartletCore
import MartletProvider
import MartletResponder
import MartletRouter
import MartletTraffic
import MartletUpstreams

@testable import MartletConfig
@testable import MartletProxy

/// The configuration of a ``LoopBench``: one upstream, and a route for each rule that tests need.
///
/// Its timeouts differ from each other, so that a deadline says which of them was set: 10 s for a head, 11 s for a
/// handshake, 75 s for an idle client, 30 s for a body; 2 s to connect, 20 s for a response and 60 s of silence.
struct LoopBenchSettings {
    private static let somewhere = SourceLocation(file: "config.yaml", line: 1, column: 1)

    /// Nothing listens there: a connection to it is never established, and never blocks.
    static let first = EndpointAddress.unix(path: "/nonexistent/martlet-1")
    static let second = EndpointAddress.unix(path: "/nonexistent/martlet-2")
    /// The name was not resolved, so that no connection can be tried.
    static let unresolved = EndpointAddress.http(host: "upstream.test", port: 80)

    var endpoints = [LoopBenchSettings.first]
    var balance = UpstreamConfiguration.Balance.roundRobin
    var host = UpstreamConfiguration.HostPolicy.keep
    var transport = UpstreamTransport()
    var limits = Limits()
    var trustedProxies: [AddressRange] = []
    /// The names of providers, which no route uses.
    var providers: [String] = []
    /// Those of them that do something.
    var handles: [String: ProviderHandle] = [:]
    var browser: BrowserRules?
    var rateLimits: [RateLimitConfiguration] = []
    /// The limits of the route `api`.
    var routeLimits = RouteLimitsConfiguration()
    /// Where shared limits count.
    var store: StoreClient?
    /// Of the configuration before.
    var formerLimits: RouteLimitPlans?
    /// Gets copies of requests.
    var mirror: (any MirrorReceiving)?
    /// More upstreams, each with one endpoint where nothing listens.
    var upstreams: [String] = []
    /// More routes, before the others.
    var routes: [RouteConfiguration] = []
    /// How checks are responded to, at `/auth/check`; `nil` without the endpoint.
    var checks: ForwardAuthConfiguration?
    /// Responds below `/own/`.
    var handler: LocalHandler = { request in .text(200, "text/plain", request.path) }

    /// The compiled configuration.
    ///
    /// Its routes, in order: the mount `own`, then `api` (upgrades to WebSocket and `chat`), `read` (GET and BREW),
    /// `small` (bodies of 10 bytes) and `plain` (no upgrades), each below its name.
    func snapshot() -> Snapshot {
        var api = Self.route("api")
        api.upgrade.protocols = ["websocket", "chat"]
        api.limits = routeLimits
        var read = Self.route("read")
        read.methods = ["GET", "BREW"]
        var small = Self.route("small")
        small.bodyLimit = .bytes(10)
        var plain = Self.route("plain")
        plain.upgrade = .none
        func mount(_ name: String, _ path: String, limit: Int) -> RouteMount {
            RouteMount(name: name, hosts: [], path: path, location: Self.somewhere, bodyLimit: limit)
        }
        let own = mount("own", "/own/**", limit: 100)
        let mounts = checks == nil ? [own] : [own, mount("check", "/auth/check/**", limit: .max)]
        var diagnostics = Diagnostics()
        let table = RouteTable.compile(
            routes + [api, read, small, plain], mounts: mounts, upstreams: ["api"] + upstreams, providers: providers,
            paths: PathOptions(), limits: limits, into: &diagnostics)
        guard let table else { fatalError(diagnostics.description) }
        return Snapshot(
            routes: table, upstreams: [Upstream(upstream())] + upstreams.map { Upstream(other($0)) },
            providers: providers.map { handles[$0] ?? ProviderHandle(NamedProvider(), name: $0) }, server: server(),
            signIn: SignInComponents(
                sessions: nil, subjects: nil, assertion: nil, handler: handler, browser: browser),
            routeLimits: RouteLimitPlans([api], server(), store: store, previous: formerLimits),
            checks: checks.map {
                CheckRules(table, mount: 1, endpoint: "/auth/check", $0, assertionHeader: "X-Assertion")
            })
    }

    private func upstream() -> UpstreamConfiguration {
        var timeouts = UpstreamTimeouts()
        timeouts.connect = .seconds(2)
        timeouts.responseHead = .seconds(20)
        timeouts.idle = .seconds(60)
        return UpstreamConfiguration(
            name: Located("api", at: Self.somewhere),
            members: endpoints.map { EndpointConfiguration(Located($0, at: Self.somewhere)) },
            timeouts: timeouts, host: host, balance: balance, transport: transport)
    }

    private func other(_ name: String) -> UpstreamConfiguration {
        UpstreamConfiguration(
            name: Located(name, at: Self.somewhere),
            members: [EndpointConfiguration(Located(.unix(path: "/nonexistent/\(name)"), at: Self.somewhere))],
            timeouts: UpstreamTimeouts(), host: .fixed("\(name).test"), balance: .roundRobin)
    }

    private func server() -> ServerConfiguration {
        var timeouts = ServerTimeouts()
        timeouts.requestHead = .seconds(10)
        timeouts.tlsHandshake = .seconds(11)
        timeouts.idle = .seconds(75)
        timeouts.bodyIdle = .seconds(30)
        return ServerConfiguration(
            listeners: [], trustedProxies: trustedProxies, limits: limits, rateLimits: rateLimits,
            paths: PathOptions(), timeouts: timeouts)
    }

    /// Adds a rate limit, and has the route `api` use it.
    mutating func limit(
        _ name: String, _ keys: [RateLimitConfiguration.Key], _ rate: RequestRate, burst: Int,
        sharedOr policy: RateLimitConfiguration.StoreErrorPolicy? = nil
    ) {
        let located = Located(name, at: Self.somewhere)
        rateLimits.append(
            RateLimitConfiguration(
                name: located, keys: keys, rate: rate, burst: burst, isShared: policy != nil,
                onStoreError: policy ?? .local))
        routeLimits.rates.append(located)
    }

    /// A route below its name.
    static func route(_ name: String) -> RouteConfiguration {
        RouteConfiguration(
            name: Located(name, at: somewhere), hosts: [], path: .glob(Located("/\(name)/**", at: somewhere)),
            methods: [], authentication: .none, credentials: [.session, .direct], authorize: [], maximumAge: nil,
            setHeaders: nil, removeHeaders: [], stripPrefix: nil, bodyLimit: .inherited, forwardsCredentials: false,
            upstream: Located("api", at: somewhere))
    }
}

/// A provider that authenticates no requests.
private struct NamedProvider: Provider {
    struct Configuration: ConfigurationDecodable {
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    static let kind: ProviderKind = "named"

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}

    init() {}
}

/// Texts that a client sends, and texts that it is expected to get.
enum BenchText {
    /// Of every moment of a bench.
    static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    static let get = "GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n"
    static let chunked = "POST /api/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

    /// The key is that of RFC 6455 §1.3.
    static let upgrade =
        "GET /api/x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

    /// A request with a body of a length; the fields end with line breaks.
    static func post(_ length: Int, fields: String = "") -> String {
        "POST /api/x HTTP/1.1\r\nHost: a\r\n\(fields)Content-Length: \(length)\r\n\r\n"
    }

    /// The ID of a bench's request, from 1.
    static func requestID(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return "0123456789abcdef" + String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The head of a forwarded response.
    /// - Parameters:
    ///   - lines: the upstream's, each with its line break.
    ///   - own: the gateway's lines between `Date` and the ID.
    static func head(_ lines: String, own: String = "", request: Int = 1) -> String {
        "\(lines)Date: \(date)\r\n\(own)X-Request-Id: \(requestID(request))\r\n\r\n"
    }

    /// The body of an error response.
    static func problemBody(_ status: Int, _ title: String, _ code: String, request: Int = 1) -> String {
        let id = requestID(request)
        var text = #"{"type":"urn:martlet:problem:\#(code)","title":"\#(title)","status":\#(status),"#
        text += #""code":"\#(code)","request_id":"\#(id)"}"#
        return text + "\n"
    }

    /// An error response.
    /// - Parameter fields: further lines, each with its line break.
    static func problem(
        _ status: Int, _ title: String, _ code: String, request: Int = 1, fields: String = "", closes: Bool = false
    ) -> String {
        let body = problemBody(status, title, code, request: request)
        var text = "HTTP/1.1 \(status) \(title)\r\nContent-Type: application/problem+json\r\n"
        text += "Cache-Control: no-store\r\nContent-Length: \(body.utf8.count)\r\nDate: \(date)\r\n"
        text += "X-Request-Id: \(requestID(request))\r\n\(fields)"
        if closes { text += "Connection: close\r\n" }
        return text + "\r\n" + body
    }
}

/// Not the one of the test support, which is a request with its response as a client sees them.
typealias Exchange = MartletProxy.Exchange
