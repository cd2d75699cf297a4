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

    /// Takes the idle connection to an endpoint that was used last.
    @inline(__always)
    mutating func takeIdle(_ endpoint: EndpointIndex) -> Handle<UpstreamConnection>? {
        guard let upstream = endpoints[Int(endpoint)].idle.last else { return nil }
        endpoints[Int(endpoint)].idle.removeLast()
        return upstream
    }
}
