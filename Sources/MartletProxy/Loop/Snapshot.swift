package import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
package import MartletProvider
package import MartletRouter

/// One configuration, compiled and immutable: what every loop works from until the next reload.
package final class Snapshot: Sendable {
    package let routes: RouteTable
    package let upstreams: [Upstream]
    package let providers: [ProviderHandle]
    /// Their names as bytes, for the log.
    let providerTexts: [[UInt8]]
    package let limits: Limits
    package let paths: PathOptions
    package let timeouts: ServerTimeouts
    /// The downstream timeouts in nanoseconds.
    let loopTimeouts: LoopTimeouts
    /// Limits for HTTP/2 clients.
    let http2: HTTP2Options
    package let trustedProxies: [AddressRange]
    /// The sets of providers that verify credentials, and the index of each route's set; equal sets share an index.
    let plans: [AuthenticationPlan]
    let planOfRoute: [Int32]
    /// For each plan, whether several routes use it.
    let isShared: [Bool]
    /// The settings of each route for the request path, without references.
    let compiledRoutes: [CompiledRoute]
    /// For each route, the fields it removes beyond the reserved ones.
    let removals: [FieldNameSet]
    /// The meanings of client fields.
    let clientFields: FieldNameTable
    let signIn: SignInComponents

    package init(
        routes: RouteTable, upstreams: [Upstream], providers: [ProviderHandle], server: ServerConfiguration,
        signIn: SignInComponents
    ) {
        self.signIn = signIn
        self.routes = routes
        self.upstreams = upstreams
        self.providers = providers
        providerTexts = providers.map { Array($0.name.utf8) }
        limits = server.limits
        paths = server.paths
        timeouts = server.timeouts
        loopTimeouts = LoopTimeouts(server.timeouts)
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
        compiledRoutes = routes.routes.map { CompiledRoute($0, providers) }
        removals = routes.routes.map(\.removeNames)
        clientFields = ClientField.table(reserved: routes.reservedNames, stripped: server.strippedHeaders)
        self.plans = plans
        self.planOfRoute = planOfRoute
        isShared = plans.indices.map { plan in planOfRoute.count { $0 == plan } > 1 }
    }
}
