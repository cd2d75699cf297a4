internal import MartletConfig
internal import MartletDecisions
internal import MartletFetch
internal import MartletIO
internal import MartletUpstreams

/// Which endpoints have health checks, and which of them are unhealthy.
struct HealthRoster: Sendable {
    private struct Member {
        let endpoint: EndpointIdentity
        /// Why it is unhealthy; `nil` if it is not.
        var failure: String?
    }

    /// What the adoption of a configuration or of new addresses has changed.
    struct Adoption {
        var targets: [HealthTarget] = []
        /// Endpoints that were unhealthy and are not checked any more.
        var released: [EndpointHealth] = []
    }

    /// An endpoint has become healthy or unhealthy.
    struct Event: Equatable {
        let health: EndpointHealth
        /// How long it was in the other state.
        let lasted: Duration
    }

    private var numbers: [EndpointIdentity: Int] = [:]
    private var members: [Int: Member] = [:]
    private var lastNumber = 0

    /// Every unhealthy endpoint, in the order in which they became known.
    var unhealthy: [EndpointHealth] {
        members.sorted { $0.key < $1.key }.compactMap { _, member in
            member.failure.map { EndpointHealth(member.endpoint, isHealthy: false, reason: $0) }
        }
    }

    /// Replaces the endpoints; those that stay keep their number and their state.
    /// - Parameter names: the addresses of host names.
    mutating func adopt(_ upstreams: [UpstreamConfiguration], _ names: [ResolvedName]) -> Adoption {
        let addresses = names.addresses
        var adoption = Adoption()
        var checked: Set<String> = []
        var next: [EndpointIdentity: Int] = [:]
        for upstream in upstreams {
            guard let check = upstream.policies.healthCheck else { continue }
            let name = upstream.name.value
            checked.insert(name)
            for (endpoint, request) in upstream.probes(check, addresses) where next[endpoint] == nil {
                let number = number(of: endpoint)
                next[endpoint] = number
                adoption.targets.append(
                    HealthTarget(
                        id: number, upstream: name, request: request, interval: check.interval,
                        jitter: check.jitter.percent,
                        thresholds: HealthThresholds(healthy: check.healthy, unhealthy: check.unhealthy)))
            }
        }
        for (endpoint, number) in numbers where next[endpoint] == nil {
            let member = members.removeValue(forKey: number)
            guard member?.failure != nil, !checked.contains(endpoint.upstream) else { continue }
            adoption.released.append(EndpointHealth(endpoint, isHealthy: true, reason: "no health checks any more"))
        }
        numbers = next
        return adoption
    }

    private mutating func number(of endpoint: EndpointIdentity) -> Int {
        if let known = numbers[endpoint] { return known }
        lastNumber += 1
        members[lastNumber] = Member(endpoint: endpoint)
        return lastNumber
    }

    /// Notes changes of states.
    /// - Returns: those of endpoints that are still checked.
    mutating func note(_ changes: [HealthChange]) -> [Event] {
        changes.compactMap { change in
            guard var member = members[change.target] else { return nil }
            member.failure = change.isHealthy ? nil : change.reason
            members[change.target] = member
            return Event(
                health: EndpointHealth(member.endpoint, isHealthy: change.isHealthy, reason: change.reason),
                lasted: change.lasted)
        }
    }
}

extension UpstreamConfiguration {
    fileprivate func probes(
        _ check: HealthCheckConfiguration, _ addresses: [EndpointIdentity: [SocketEndpoint]]
    ) -> [(EndpointIdentity, ProbeRequest)] {
        links(addresses, port: check.port).map {
            ($0.identity, probe(check, of: $0.identity.address, to: $0.destination))
        }
    }

    private func probe(
        _ check: HealthCheckConfiguration, of address: EndpointAddress, to destination: EndpointDestination?
    ) -> ProbeRequest {
        var request = ProbeRequest(to: destination, host: check.host ?? address.authority(port: check.port))
        request.path = check.path
        request.expected = check.expected
        request.isGRPC = check.isGRPC
        request.timeout = check.timeout
        request.version = version(of: address)
        request.tls = security(of: address)
        return request
    }
}
