package import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
package import MartletIO
package import MartletProvider
package import MartletRouter
package import MartletTLS

/// One configuration, compiled: what every loop works from until a reload brings the next.
///
/// Immutable.
package final class Snapshot: Sendable {
    package let routes: RouteTable
    package let upstreams: [Upstream]
    package let providers: [ProviderHandle]
    /// Their names as bytes, for the log.
    let providerTexts: [[UInt8]]
    package let limits: Limits
    package let paths: PathOptions
    package let timeouts: ServerTimeouts
    /// The same in nanoseconds, as loops reckon.
    let patience: Patience
    /// What HTTP/2 clients may do.
    let http2: HTTP2Options
    package let trustedProxies: [AddressRange]
    /// For each route, which set of providers judges its credentials; equal sets share a number.
    let plans: [AuthenticationPlan]
    let planOfRoute: [Int32]
    /// Of each plan, whether several routes have it.
    let isShared: [Bool]
    /// What the request path asks of each route, side by side and free of references.
    let facts: [RouteFacts]
    /// For each route, the names it takes out on top of the reserved ones.
    let removals: [FieldNameSet]
    /// What clients' fields mean to the gateway.
    let clientFields: FieldNameTable
    let signIn: SignInParts

    package init(
        routes: RouteTable, upstreams: [Upstream], providers: [ProviderHandle], server: ServerConfiguration,
        signIn: SignInParts
    ) {
        self.signIn = signIn
        self.routes = routes
        self.upstreams = upstreams
        self.providers = providers
        providerTexts = providers.map { Array($0.name.utf8) }
        limits = server.limits
        paths = server.paths
        timeouts = server.timeouts
        patience = Patience(server.timeouts)
        http2 = HTTP2Options(server)
        trustedProxies = server.trustedProxies
        var plans: [AuthenticationPlan] = []
        var planOfRoute: [Int32] = []
        for route in routes.routes {
            let plan = AuthenticationPlan(providers: route.providers.map { Int32($0) })
            if let known = plans.firstIndex(of: plan) {
                planOfRoute.append(Int32(known))
            } else {
                planOfRoute.append(Int32(plans.count))
                plans.append(plan)
            }
        }
        facts = routes.routes.map { RouteFacts($0, providers) }
        removals = routes.routes.map(\.removeNames)
        clientFields = ClientField.table(reserved: routes.reservedNames, stripped: server.strippedHeaders)
        self.plans = plans
        self.planOfRoute = planOfRoute
        isShared = plans.indices.map { plan in planOfRoute.count { $0 == plan } > 1 }
    }
}

/// What a snapshot knows of sessions, accounts and what the gateway answers itself.
package struct SignInParts: Sendable {
    /// Judges session tokens; `nil` refuses them.
    package let sessions: (any SessionJudging)?
    /// Finds the subject of a provider's identity; `nil` without accounts.
    package let subjects: (any SubjectResolving)?
    /// Writes the signed statement that upstreams get; `nil` without `assertion:`.
    package let assertion: AssertionSigner?
    /// What answers at each mount of the route table, in its order.
    package let handlers: [LocalHandler]

    package init(
        sessions: (any SessionJudging)?, subjects: (any SubjectResolving)?, assertion: AssertionSigner?,
        handlers: [LocalHandler]
    ) {
        self.sessions = sessions
        self.subjects = subjects
        self.assertion = assertion
        self.handlers = handlers
    }
}

/// The plain facts of a route.
struct RouteFacts: Sendable {
    /// The place of the handler that answers, or −1.
    let mount: Int
    let mode: Route.Mode
    let bodyLimit: Int
    let streamLimit: Int
    let upstream: Int
    /// What the route says of the client's fields.
    let rewriting: RequestRewriter.Rules
    let stripsPrefix: Bool
    let takesSessions: Bool
    let takesDirect: Bool
    /// Whether a provider of it judges pairs of name and password.
    let takesBasic: Bool
    let tunnels: TunnelFacts

    init(_ route: Route, _ providers: [ProviderHandle]) {
        mount = route.mount
        takesSessions = route.credentials.contains(.session)
        takesDirect = route.credentials.contains(.direct)
        takesBasic = takesDirect && route.providers.contains { providers[$0].accepts.contains(.basic) }
        mode = route.mode
        bodyLimit = route.bodyLimit ?? .max
        streamLimit = route.streamLimit ?? .max
        upstream = route.upstream
        stripsPrefix = route.stripsPrefix
        let credentials: RequestRewriter.Rules = route.forwardsCredentials ? .keepsOwnTokens : .dropsAuthorization
        rewriting = route.removeNames.isEmpty ? credentials : credentials.union(.hasRemovals)
        tunnels = TunnelFacts(route.upgrade)
    }
}

/// What a route says of upgrades and of exchanges that outlive their credential; times in nanoseconds.
struct TunnelFacts: Sendable {
    /// Whether a request may upgrade to anything at all.
    let areAllowed: Bool
    /// How long after its credential an exchange ends; −1 is never.
    let grace: Int64
    let idlePatience: Int64
    let longestAge: Int64

    init(_ upgrade: UpgradeConfiguration) {
        areAllowed = !upgrade.protocols.isEmpty
        grace = if case .after(let grace) = upgrade.closeOnExpiry { grace.boundedNanoseconds } else { -1 }
        idlePatience = upgrade.idle.boundedNanoseconds
        longestAge = (upgrade.maximumConnectionAge ?? .seconds(Int64.max)).boundedNanoseconds
    }
}

/// Which providers may judge a credential, in the order of the route.
struct AuthenticationPlan: Sendable, Equatable {
    let providers: [Int32]
}

extension HTTP2Options {
    init(_ server: ServerConfiguration) {
        self.init()
        maximumConcurrentStreams = server.http2.maximumConcurrentStreams
        maximumResets = server.http2.maximumResets
        initialWindow = server.http2.initialWindow
        headerBytes = server.limits.headerBytes
        headerFields = server.limits.headerFields
    }
}

/// Deadlines of the client side in nanoseconds.
struct Patience: Sendable {
    let requestHead: Int64
    let handshake: Int64
    let idle: Int64
    let bodyIdle: Int64

    init(_ timeouts: ServerTimeouts) {
        requestHead = timeouts.requestHead.boundedNanoseconds
        handshake = timeouts.tlsHandshake.boundedNanoseconds
        idle = timeouts.idle.boundedNanoseconds
        bodyIdle = timeouts.bodyIdle.boundedNanoseconds
    }
}

extension Duration {
    /// Nanoseconds, at most a hundred years: what can be added to the clock without a thought.
    var boundedNanoseconds: Int64 { min(max(wholeNanoseconds, 0), 3_155_760_000 * 1_000_000_000) }
}

/// An upstream as loops use it.
package struct Upstream: Sendable {
    package let name: String
    package let endpoints: [EndpointAddress]
    /// Deadlines in nanoseconds.
    let connectPatience: Int64
    let answerPatience: Int64
    let idlePatience: Int64
    package let host: UpstreamConfiguration.HostPolicy
    package let balance: UpstreamConfiguration.Balance
    package let wire: UpstreamWire
    /// For its https endpoints.
    package let tls: TLSClientContext?
    /// Whether its connections can be handed over to another protocol: those of HTTP/2 carry others' requests too.
    let carriesUpgrades: Bool

    package init(_ configuration: UpstreamConfiguration, tls: TLSClientContext? = nil) {
        wire = configuration.wire
        self.tls = tls
        name = configuration.name.value
        endpoints = configuration.endpoints.map(\.value)
        connectPatience = configuration.timeouts.connect.boundedNanoseconds
        answerPatience = configuration.timeouts.responseHead.boundedNanoseconds
        idlePatience = configuration.timeouts.idle.boundedNanoseconds
        host = configuration.host
        balance = configuration.balance
        carriesUpgrades = configuration.wire.version == .http1
    }
}

/// The addresses that a host name of an upstream has now.
package struct ResolvedName: Sendable {
    package let endpoint: EndpointAddress
    package let addresses: [SocketEndpoint]

    package init(endpoint: EndpointAddress, addresses: [SocketEndpoint]) {
        self.endpoint = endpoint
        self.addresses = addresses
    }
}

/// A listening socket that a loop accepts from.
package struct ListenerSocket: Sendable {
    /// Who answers what comes in.
    package enum Role: Sendable {
        /// Requests are routed to upstreams.
        case gateway
        /// Requests that this handler takes are answered by it, all others are routed.
        case local(ListenerHandler)
    }

    /// Distinguishes listeners across reloads.
    package let id: Int32
    package let fd: Int32
    /// Other loops accept from the same socket: a client wakes one of them only.
    package let isShared: Bool
    package let role: Role
    /// What the configuration says of the listener.
    let rules: ListenerRules
    /// Encrypts its connections; `nil` in clear text.
    package let tls: TLSServerContext?

    var handler: ListenerHandler? { if case .local(let handler) = role { handler } else { nil } }

    /// Has a poller report what waits to be accepted.
    func register(with poller: borrowing Poller) throws(IOError) {
        let interest: Readiness = isShared ? [.readable, .exclusive] : .readable
        try poller.add(fd, interest, token: EventToken(.listener, index: id).raw)
    }

    /// - Parameters:
    ///   - configuration: `nil` for a listener that is not in the file.
    ///   - tls: for a listener whose configuration asks for it.
    package init(
        id: Int32, fd: Int32, isShared: Bool, role: Role, configuration: ListenerConfiguration? = nil,
        tls: TLSServerContext? = nil
    ) {
        self.id = id
        self.fd = fd
        self.isShared = isShared
        self.role = role
        self.tls = tls
        var rules = ListenerRules()
        if let configuration {
            rules.isSecure = configuration.tls != nil
            rules.offersHTTP2 = configuration.offersHTTP2
            rules.takesProxyHeader = configuration.takesProxyProtocol
            rules.isTrusted = configuration.isTrusted
            rules.redirectPort = configuration.redirectsToHTTPSPort ?? 0
            rules.strictTransportSeconds = configuration.tls?.strictTransport?.wholeSeconds ?? 0
        }
        self.rules = rules
    }

    private init(_ other: ListenerSocket, fd: Int32) {
        id = other.id
        self.fd = fd
        isShared = other.isShared
        role = other.role
        tls = other.tls
        rules = other.rules
    }

    /// The same with a descriptor that the loop has already.
    func keeping(_ fd: Int32) -> ListenerSocket { ListenerSocket(self, fd: fd) }
}
