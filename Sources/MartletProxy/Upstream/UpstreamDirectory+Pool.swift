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
}
