internal import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions

/// The endpoints that the operator has taken out of use, until the gateway ends: a reload keeps those that it has.
final class DrainedEndpoints: Sendable {
    private let endpoints = Lock<Set<EndpointIdentity>>([], .endpoints)

    /// Takes an endpoint out of use, or back, and notifies of all that are.
    /// - Parameter url: as it stands in the configuration.
    func change(
        _ url: String, of name: String, isDrained: Bool, in upstreams: [UpstreamConfiguration],
        notifying notify: (Set<EndpointIdentity>) -> Void
    ) -> EndpointDraining {
        guard let upstream = upstreams.first(where: { $0.name.value == name }) else { return .unknownUpstream }
        guard let address = upstream.endpoints.first(where: { EndpointText.url($0.value) == url })?.value else {
            return .unknownEndpoint
        }
        let identity = EndpointIdentity(upstream: name, address: address)
        // Under the lock, so that no older set follows a newer one.
        endpoints.withLock { endpoints in
            if isDrained { endpoints.insert(identity) } else { endpoints.remove(identity) }
            notify(endpoints)
        }
        return .done
    }

    /// Forgets the endpoints that a new configuration does not have, and notifies of those that are left.
    func follow(_ upstreams: [UpstreamConfiguration], notifying notify: (Set<EndpointIdentity>) -> Void) {
        let configured = Set(
            upstreams.flatMap { upstream in
                upstream.endpoints.map { EndpointIdentity(upstream: upstream.name.value, address: $0.value) }
            })
        endpoints.withLock { endpoints in
            guard !endpoints.isEmpty else { return }
            endpoints.formIntersection(configured)
            notify(endpoints)
        }
    }
}
