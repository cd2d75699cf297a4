internal import MartletDecisions

/// The idle connections of the endpoints.
///
/// As many are kept as were busy together during the last `idle` time: another one is opened only where none is idle,
/// the one used last is used first, and the others close when their time is over.
extension UpstreamDirectory {
    /// Whether an idle connection to an endpoint is simply kept; otherwise there is more to decide.
    @inline(__always)
    func keepsIdle(_ endpoint: EndpointIndex) -> Bool { endpoints[Int(endpoint)].keepsIdle }

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

    /// Removes a connection from the idle ones. Those that close have mostly been idle for longest.
    mutating func removeIdle(_ upstream: Handle<UpstreamConnection>, of endpoint: EndpointIndex) {
        guard let position = endpoints[Int(endpoint)].idle.firstIndex(of: upstream) else { return }
        endpoints[Int(endpoint)].idle.remove(at: position)
    }
}

/// Upstreams whose connections another loop wants, because together they have as many as they may have.
extension UpstreamDirectory {
    /// The connections that become idle next are for another loop; `nil` when it wants no more.
    mutating func setWanted(_ cluster: ClusterIndex, by mailbox: Mailbox?) {
        clusters[Int(cluster)].wantedBy = mailbox
        for member in clusters[Int(cluster)].members { endpoints[Int(member)].isWanted = mailbox != nil }
    }

    /// The loop that gets the next connection of an upstream that becomes idle: while requests wait here as well, every
    /// second one.
    mutating func nextTaker(of cluster: ClusterIndex) -> Mailbox? {
        guard let mailbox = clusters[Int(cluster)].wantedBy else { return nil }
        guard let breaker = clusters[Int(cluster)].upstream.breaker, breaker.pending.current > 0 else {
            setWanted(cluster, by: nil)
            return nil
        }
        clusters[Int(cluster)].isOwnTurn = clusters[Int(cluster)].isWaitedFor && !clusters[Int(cluster)].isOwnTurn
        return clusters[Int(cluster)].isOwnTurn ? nil : mailbox
    }
}
