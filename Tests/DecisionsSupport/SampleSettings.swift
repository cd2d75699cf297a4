import MartletCore
package import MartletDecisions
package import MartletProvider
package import MartletResponder
import MartletRouter
package import MartletTraffic
package import MartletUpstreams

@testable package import MartletConfig

/// A configuration of a loop: one upstream, and a route for each rule that tests need.
///
/// Its timeouts differ from each other, so that a deadline says which of them was set: 10 s for a head, 11 s for a
/// handshake, 75 s for an idle client, 30 s for a body; 2 s to connect, 20 s for a response and 60 s of silence.
package struct SampleSettings {
    private static let somewhere = SourceLocation(file: "config.yaml", line: 1, column: 1)

    /// Nothing listens there: a connection to it is never established, and never blocks.
    package init() {}

    package static let first = EndpointAddress.unix(path: "/nonexistent/martlet-1")
    package static let second = EndpointAddress.unix(path: "/nonexistent/martlet-2")
    /// The name was not resolved, so that no connection can be tried.
    package static let unresolved = EndpointAddress.http(host: "upstream.test", port: 80)

    package var endpoints = [SampleSettings.first]
    package var balance = UpstreamConfiguration.Balance.roundRobin
    package var host = UpstreamConfiguration.HostPolicy.keep
    package var transport = UpstreamTransport()
    /// Bounds of the upstream, and what is counted against them; two loops may share that.
    package var breaker: BreakerConfiguration?
    package var counters: UpstreamCounters?
    package var limits = Limits()
    package var trustedProxies: [AddressRange] = []
    /// The names of providers, which no route uses.
    package var providers: [String] = []
    /// Those of them that do something.
    package var handles: [String: ProviderHandle] = [:]
    package var browser: BrowserRules?
    package var rateLimits: [RateLimitConfiguration] = []
    /// The limits of the route `api`.
    package var routeLimits = RouteLimitsConfiguration()
    /// Where shared limits count.
    package var store: StoreClient?
    /// Of the configuration before.
    package var formerLimits: RouteLimitPlans?
    /// Gets copies of requests.
    package var mirror: (any MirrorReceiving)?
    /// More upstreams, each with one endpoint where nothing listens.
    package var upstreams: [String] = []
    /// More routes, before the others.
    package var routes: [RouteConfiguration] = []
    /// How checks are responded to, at `/auth/check`; `nil` without the endpoint.
    package var checks: ForwardAuthConfiguration?
    /// Responds below `/own/`.
    package var handler: LocalHandler = { request in .text(200, "text/plain", request.path) }

    /// The compiled configuration.
    ///
    /// Its routes, in order: the mount `own`, then `api` (upgrades to WebSocket and `chat`), `read` (GET and BREW),
    /// `small` (bodies of 10 bytes) and `plain` (no upgrades), each below its name.
    package func snapshot() -> Snapshot {
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
            routes: table,
            upstreams: [Upstream(upstream(), counters: counters)] + upstreams.map { Upstream(other($0)) },
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
        var upstream = UpstreamConfiguration(
            name: Located("api", at: Self.somewhere),
            members: endpoints.map { EndpointConfiguration(Located($0, at: Self.somewhere)) },
            timeouts: timeouts, host: host, balance: balance, transport: transport)
        upstream.policies.breaker = breaker
        return upstream
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
    package mutating func limit(
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
    package static func route(_ name: String) -> RouteConfiguration {
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

    package static let kind: ProviderKind = "named"

    package static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}

    init() {}
}
