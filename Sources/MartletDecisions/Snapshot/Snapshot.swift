package import MartletAuthenticator
package import MartletConfig
internal import MartletCore
package import MartletHTTP
package import MartletHTTP2
package import MartletProvider
package import MartletResponder
package import MartletRouter

/// One configuration, compiled and immutable: what every loop works from until the next reload.
// lint:large-type one property for each part of a configuration
package final class Snapshot: Sendable {
    package let routes: RouteTable
    package let upstreams: [Upstream]
    package var providers: [ProviderHandle] { authentication.providers }
    /// Their names as bytes, for the log.
    package let providerTexts: [[UInt8]]
    package let limits: Limits
    package let paths: PathOptions
    package let timeouts: ServerTimeouts
    /// The downstream timeouts in nanoseconds.
    package let loopTimeouts: LoopTimeouts
    /// Limits for HTTP/2 clients.
    package let http2: HTTP2Options
    package let trustedProxies: [AddressRange]
    /// Who may pass: what the authenticator reads.
    package let authentication: AuthenticationRules
    /// The settings of each route for the request path, without references.
    package let compiledRoutes: [CompiledRoute]
    /// For each route, the fields it removes beyond the reserved ones.
    package let removals: [FieldNameSet]
    /// For each route, what only few routes have.
    package let routeRules: [RouteRules]
    /// How requests for upstreams are signed.
    package let pseudonym: ViaPseudonym
    /// The meanings of client fields.
    package let clientFields: FieldNameTable
    /// The gateway's own endpoints.
    private let endpoints: OwnEndpoints
    /// The handler of the route table's mounts.
    package var handler: LocalHandler { endpoints.handler }
    /// Why the handler gets no request of a network now.
    package var rejection: @Sendable (_ network: ClientNetwork?) -> Failure? { endpoints.rejection }
    /// How checks are responded to; `nil` without an endpoint for them.
    package var checks: CheckRules? { endpoints.checks }
    /// The index of its mount, or one that no route has.
    package let checkMount: Int
    /// What concerns browsers; `nil` without `browser:`.
    package let browser: BrowserRules?
    /// Whether there is `browser:`. A flag, because nothing retains it.
    package let hasBrowser: Bool
    /// The limits on requests of routes.
    package let routeLimits: RouteLimitPlans
    /// `tracing:`; `nil` where trace contexts pass untouched.
    package let tracing: TracingRules?
    /// When requests are rejected because there is too much to do; `nil` is never.
    package let overload: OverloadConfiguration?
    /// Where access lines go, and what they have.
    package let accessLog: AccessPlan
    /// Whether something is to be done with heads of responses once they are written: for cookies, to announce limits,
    /// or to note them for access lines.
    package let editsHeads: Bool
    /// Whether more than `Authorization` may be a credential: cookies, headers of their own, parts of the request.
    package let hasOtherCredentials: Bool
    /// Whether any route has headers or certificates that are credentials, or decides by parts of the request.
    let readsRequests: Bool

    package init(
        routes: RouteTable, upstreams: [Upstream], providers: [ProviderHandle], server: ServerConfiguration,
        signIn: SignInComponents, names: CallerNames = CallerNames(),
        routeLimits: RouteLimitPlans = RouteLimitPlans(), checks: CheckRules? = nil, tracing: TracingRules? = nil,
        accessLog: AccessPlan = .standard
    ) {
        self.tracing = tracing
        self.accessLog = accessLog
        self.routeLimits = routeLimits
        overload = server.overload
        authentication = AuthenticationRules(
            routes, providers: providers, upstreams: upstreams.map(\.name), sessions: signIn.sessions,
            subjects: signIn.subjects, assertion: signIn.assertion, names: names, proofs: signIn.proofs,
            maximumTokenBytes: server.limits.tokenBytes)
        checkMount = checks?.mount ?? .min
        endpoints = OwnEndpoints(handler: signIn.handler, rejection: signIn.rejection, checks: checks)
        browser = signIn.browser
        hasBrowser = signIn.browser != nil
        editsHeads = hasBrowser || routeLimits.announce || accessLog.notesResponses
        readsRequests = authentication.readsRequests
        hasOtherCredentials = hasBrowser || readsRequests
        self.routes = routes
        self.upstreams = upstreams
        providerTexts = providers.map { Array($0.name.utf8) }
        limits = server.limits
        paths = server.paths
        timeouts = server.timeouts
        loopTimeouts = LoopTimeouts(server.timeouts)
        http2 = HTTP2Options(server)
        trustedProxies = server.trustedProxies
        let removals = routes.routes.map { [authentication] in $0.removedNames(with: authentication) }
        compiledRoutes = zip(routes.routes, removals).map {
            CompiledRoute(
                $0, upstreams, removals: $1, limitPlan: routeLimits.index(of: $0), isTraced: tracing != nil)
        }
        self.removals = removals
        let credentials = authentication.credentialNames
        routeRules = routes.routes.map { RouteRules($0, upstreams, credentials: credentials) }
        pseudonym = ViaPseudonym(routes: routes.configured.map(\.name), upstreams: upstreams)
        clientFields = ClientField.table(
            reserved: routes.reservedNames, stripped: server.strippedHeaders,
            credentials: authentication.withheldNames, cutsCookies: signIn.browser != nil,
            tracesRequests: tracing != nil)
    }
}

/// What responds at the paths that the gateway serves itself.
private struct OwnEndpoints {
    let handler: LocalHandler
    let rejection: @Sendable (_ network: ClientNetwork?) -> Failure?
    let checks: CheckRules?
}
