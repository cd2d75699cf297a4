package import MartletConfig
internal import MartletCore
package import MartletIO
package import MartletProvider
package import MartletRouter

/// One configuration, compiled: what every loop works from until a reload brings the next. Immutable.
package final class Snapshot: Sendable {
    package let routes: RouteTable
    package let upstreams: [Upstream]
    package let providers: [ProviderHandle]
    package let limits: Limits
    package let paths: PathOptions
    package let timeouts: ServerTimeouts
    package let trustedProxies: [AddressRange]
    /// For each route, which set of providers judges its credentials; equal sets share a number.
    let plans: [AuthenticationPlan]
    let planOfRoute: [Int32]

    package init(
        routes: RouteTable, upstreams: [Upstream], providers: [ProviderHandle], server: ServerConfiguration
    ) {
        self.routes = routes
        self.upstreams = upstreams
        self.providers = providers
        limits = server.limits
        paths = server.paths
        timeouts = server.timeouts
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
        self.plans = plans
        self.planOfRoute = planOfRoute
    }
}

/// Which providers may judge a credential, in the order of the route.
struct AuthenticationPlan: Sendable, Equatable {
    let providers: [Int32]
}

/// An upstream as loops use it.
package struct Upstream: Sendable {
    package let name: String
    package let endpoints: [EndpointAddress]
    package let timeouts: UpstreamTimeouts
    package let host: UpstreamConfiguration.HostPolicy
    package let balance: UpstreamConfiguration.Balance

    package init(_ configuration: UpstreamConfiguration) {
        name = configuration.name.value
        endpoints = configuration.endpoints.map(\.value)
        timeouts = configuration.timeouts
        host = configuration.host
        balance = configuration.balance
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
    package enum Role: Sendable {
        /// Requests are routed to upstreams.
        case gateway
        /// Requests are answered by this handler.
        case local(LocalHandler)
    }

    /// Distinguishes listeners across reloads.
    package let id: Int32
    package let fd: Int32
    package let isUnix: Bool
    package let role: Role

    var handler: LocalHandler? { if case .local(let handler) = role { handler } else { nil } }

    /// Has a poller report what waits to be accepted.
    func register(with poller: borrowing Poller) throws(IOError) {
        let interest: Readiness = isUnix ? [.readable, .exclusive] : .readable
        try poller.add(fd, interest, token: EventToken(.listener, index: id).raw)
    }

    package init(id: Int32, fd: Int32, isUnix: Bool, role: Role) {
        self.id = id
        self.fd = fd
        self.isUnix = isUnix
        self.role = role
    }
}
