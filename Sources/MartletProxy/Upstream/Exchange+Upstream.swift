internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletTLS

/// An exchange and its upstream connection.
extension Exchange {
    /// Whether the chosen endpoint supports upgrades.
    @inline(never)
    mutating func carriesUpgrades(_ upstreams: inout UpstreamConnections) -> Bool {
        switch upstreams.directory.endpoints[Int(forwarding.endpoint)].address {
        case .http: true
        case .https, .unix:
            upstreams.directory.clusters[Int(forwarding.cluster)].upstream.carriesUpgrades
        case .h2c, .echo: false
        }
    }

    /// Fills in `Host` where it is the endpoint's name.
    mutating func fillInHost(
        _ endpoint: EndpointIndex, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        guard forwarding.head.hostLine.end > 0 else { return }
        forwarding.head.fillInHost(
            upstreams.directory.endpoints[Int(endpoint)].hostValue, scratch: &context.scratch.rewrittenHead)
    }

    /// The attempt of a request that has just failed.
    mutating func failedAttempt(
        _ progress: FailedAttempt.Progress, _ upstreams: inout UpstreamConnections
    ) -> FailedAttempt {
        let cluster = Int(forwarding.cluster)
        return FailedAttempt(
            progress: progress, endpoint: forwarding.endpoint,
            attempts: forwarding.attempts,
            endpoints: upstreams.directory.clusters[cluster].members.count,
            isRepeatable: isRepeatable, hasBodyBytes: body.count > 0,
            hasResponseStarted: response.hasStarted,
            policy: upstreams.directory.clusters[cluster].upstream.traffic.retries)
    }
}
