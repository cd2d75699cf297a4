internal import MartletConfig
internal import MartletDecisions
internal import MartletFetch
internal import MartletIO
internal import MartletTraffic
internal import MartletUpstreams

/// Which upstreams get copies of requests, and which of their endpoints are to be used.
struct MirrorRoster: Sendable {
    /// For how long a copy is on its way at most.
    static let longestTimeout = Duration.seconds(10)

    /// Those that some route names in its `mirror`.
    private var upstreams: [UpstreamConfiguration] = []
    private var addresses: [EndpointIdentity: [SocketEndpoint]] = [:]
    private var drained: Set<EndpointIdentity> = []
    private var unhealthy: Set<EndpointIdentity> = []

    var isEmpty: Bool { upstreams.isEmpty }

    var targets: [MirrorTarget] {
        upstreams.map { upstream in
            var target = MirrorTarget(upstream.name.value)
            target.endpoints = upstream.links(addresses).compactMap { endpoint($0, of: upstream) }
            let policies = upstream.policies
            target.panicThreshold = policies.panicThreshold?.percent ?? (policies.healthCheck == nil ? 0 : 50)
            target.connectTimeout = upstream.timeouts.connect
            target.timeout = min(upstream.timeouts.responseHead, Self.longestTimeout)
            return target
        }
    }

    private func endpoint(
        _ link: UpstreamConfiguration.Link, of upstream: UpstreamConfiguration
    ) -> MirrorTarget.Endpoint? {
        guard let destination = link.destination else { return nil }
        let address = link.identity.address
        var endpoint = MirrorTarget.Endpoint(
            EndpointLink(destination, tls: upstream.security(of: address), version: upstream.version(of: address)),
            host: address.authority())
        endpoint.weight = link.member.weight
        endpoint.isBackup = link.member.isBackup
        // The operator takes out a host name with all of its addresses.
        let whole = EndpointIdentity(upstream: link.identity.upstream, address: address)
        if drained.contains(whole) {
            endpoint.condition = .drained
        } else if unhealthy.contains(link.identity) {
            endpoint.condition = .unhealthy
        }
        return endpoint
    }

    mutating func adopt(_ configuration: GatewayConfiguration) {
        let names = Set(configuration.routes.compactMap { $0.mirror?.upstream.value })
        upstreams = configuration.upstreams.filter { names.contains($0.name.value) }
    }

    /// Follows the addresses of host names, and forgets the health of endpoints that are gone.
    mutating func adopt(_ names: [ResolvedName]) {
        addresses = isEmpty ? [:] : names.addresses
        if unhealthy.isEmpty { return }
        unhealthy.formIntersection(upstreams.flatMap { $0.links(addresses) }.map(\.identity))
    }

    /// Follows the health checks, which name endpoints that have changed.
    mutating func note(_ endpoints: [EndpointHealth]) {
        for one in endpoints {
            if one.isHealthy { unhealthy.remove(one.endpoint) } else { unhealthy.insert(one.endpoint) }
        }
    }

    /// Follows the operator: exactly these endpoints are out of use.
    mutating func drain(_ endpoints: Set<EndpointIdentity>) { drained = endpoints }
}
