internal import MartletDecisions

/// The idle connections of the endpoints.
extension UpstreamDirectory {
    /// Idle connections kept per endpoint.
    static let idleLimit = 256

    /// Whether an idle connection to an endpoint is kept: one that began with a PROXY header is for one client only.
    @inline(__always)
    func keepsIdle(_ endpoint: EndpointIndex) -> Bool {
        !endpoints[Int(endpoint)].isRetired && !endpoints[Int(endpoint)].transport.sendsProxyHeader
            && endpoints[Int(endpoint)].idle.count < UpstreamDirectory.idleLimit
    }

    /// Whether connections to an endpoint are counted.
    @inline(__always)
    func isCounted(_ endpoint: EndpointIndex) -> Bool {
        clusters[Int(endpoints[Int(endpoint)].cluster)].upstream.isCounted
    }

    /// The idle connection of an upstream that has been idle for longest at its endpoint.
    func oldestIdle(of cluster: ClusterIndex) -> Handle<UpstreamConnection>? {
        for member in clusters[Int(cluster)].members {
            if let idle = endpoints[Int(member)].idle.first { return idle }
        }
        return nil
    }

    /// Some idle connection, the one of its endpoint that has been idle for longest.
    func anyIdle() -> Handle<UpstreamConnection>? {
        for endpoint in endpoints.indices {
            if let idle = endpoints[endpoint].idle.first { return idle }
        }
        return nil
    }

    /// Takes the idle connection to an endpoint that was used last.
    @inline(__always)
    mutating func takeIdle(_ endpoint: EndpointIndex) -> Handle<UpstreamConnection>? {
        guard let upstream = endpoints[Int(endpoint)].idle.last else { return nil }
        endpoints[Int(endpoint)].idle.removeLast()
        return upstream
    }
}
