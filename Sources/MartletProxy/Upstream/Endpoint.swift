internal import MartletConfig
internal import MartletDecisions
internal import MartletIO
internal import MartletTraffic

extension UpstreamDirectory {
    /// One endpoint in this loop: its index is stable while it is configured.
    // lint:large-type what a loop knows of an endpoint: its address, its connections and its state
    struct Endpoint {
        let identity: EndpointIdentity
        /// The `Host` value for `host: endpoint`.
        let hostValue: [UInt8]
        /// Its URL, for logs and metrics.
        let text: [UInt8]
        /// The hash of its URL and address: the same in every process.
        let hash: UInt64
        /// The protocol it uses.
        var transport: EndpointProtocol { didSet { setKeepsIdle() } }
        /// HTTP/2 connections with capacity for more streams.
        var connections: [Handle<UpstreamConnection>] = []
        var addresses: [SocketEndpoint]
        var addressIndex = 0
        var active = 0
        /// Idle connections, the one used last at the end.
        var idle: [Handle<UpstreamConnection>] = []
        var cluster = ClusterIndex.none
        /// Requests to it have failed since it last responded, or its error rate counts: a flag, because every request
        /// asks.
        var isWatched = false
        var ejection = Ejection()
        var rate = ErrorRate()
        var watch = EndpointWatch()
        var isRetired = false { didSet { setKeepsIdle() } }
        /// Requests of another loop wait for its connections.
        var isWanted = false { didSet { setKeepsIdle() } }
        /// Whether an idle connection is simply kept: what every request asks.
        private(set) var keepsIdle = true

        var address: EndpointAddress { identity.address }

        /// Whether a connection may be idle here: one that began with a PROXY header is for one client only.
        var mayIdle: Bool { !isRetired && !transport.sendsProxyHeader }

        private mutating func setKeepsIdle() { keepsIdle = mayIdle && !isWanted }
    }

    /// One upstream and its endpoints.
    struct Cluster {
        var upstream: Upstream
        var members: [EndpointIndex]
        /// The configured weight of each member.
        var weights: [Int] = []
        /// The only endpoint, if there is only one and it may be used: most upstreams have no choice to make.
        var single = EndpointIndex.none
        /// Whether a connection to one of them may carry several requests.
        var hasStreams = false
        /// Requests of this loop wait for its connections.
        var isWaitedFor = false
        /// The loop that gets connections that become idle: requests wait there.
        var wantedBy: Mailbox?
        /// While requests wait in both, the last one stayed here.
        var isOwnTurn = false
        var balancer = Balancer()
        /// What the balancer knows of each member, by its position.
        var candidates: [EndpointCandidate] = []
    }
}

/// What health checks and the operator say of an endpoint, and since when.
struct EndpointWatch: Equatable {
    private(set) var isHealthy = true
    /// Why it is healthy or not, in words.
    private(set) var reason = ""
    /// Taken out by the operator.
    private(set) var isDrained = false
    /// When it became healthy, was restored or was added to an upstream that had others.
    private(set) var startedAt: Int64?
    /// When it last changed between healthy and unhealthy, or drained and not.
    private(set) var changedAt: Int64?
    /// When it left the configuration.
    var retiredAt: Int64?

    /// Its share grows slowly from now on.
    mutating func start(at now: Int64) { startedAt = now }

    /// - Returns: whether something has changed.
    @discardableResult
    mutating func note(isHealthy healthy: Bool, reason: String, at now: Int64) -> Bool {
        self.reason = reason
        guard healthy != isHealthy else { return false }
        isHealthy = healthy
        changedAt = now
        if healthy { startedAt = now }
        return true
    }

    /// - Returns: whether something has changed.
    @discardableResult
    mutating func drain(_ drained: Bool, at now: Int64) -> Bool {
        guard drained != isDrained else { return false }
        isDrained = drained
        changedAt = now
        if !drained { startedAt = now }
        return true
    }
}
