package import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletReports

/// The endpoints of a loop's upstreams: addresses, load, and recent failures.
struct UpstreamDirectory: ~Copyable {
    /// One endpoint in this loop: its index is stable; a retired one is reused when its address is configured again.
    struct Endpoint {
        let address: EndpointAddress
        /// The `Host` value for `host: endpoint`.
        let hostValue: [UInt8]
        /// For logs and metrics.
        let text: [UInt8]
        /// The protocol it uses.
        var transport: EndpointProtocol
        /// HTTP/2 connections with capacity for more streams.
        var connections: [Handle<UpstreamConnection>] = []
        var addresses: [SocketEndpoint]
        var addressIndex = 0
        var active = 0
        /// Idle connections, the one used last at the end.
        var idle: [Handle<UpstreamConnection>] = []
        var failures = 0
        var ejections = 0
        var ejectedUntil: Int64 = 0
        var isHalfOpen = false
        var isRetired = false
    }

    /// Consecutive failures after which an endpoint is ejected for a while.
    private static let failureLimit = 5
    private static let maximumEjection: Int64 = 60_000_000_000

    var endpoints = FlatList<Endpoint>()
    private var known: [EndpointKey: EndpointIndex] = [:]
    /// Upstreams by an index that is stable across reloads, because it is assigned by name.
    private(set) var clusters = FlatList<Cluster>()
    private var clusterOfName: [String: ClusterIndex] = [:]
    /// For each upstream of the current snapshot, its index in `clusters`.
    private(set) var clusterOfUpstream: [ClusterIndex] = []

    /// The same address with another transport is another endpoint.
    private struct EndpointKey: Hashable {
        let address: EndpointAddress
        let transport: UpstreamTransport
    }

    /// One upstream and its endpoints.
    struct Cluster {
        var upstream: Upstream
        var members: [EndpointIndex]
        var rotation = 0
    }

    /// Adopts a new configuration; endpoints that stay keep their connections and their failures.
    /// - Returns: the endpoints that are not used any more.
    @discardableResult
    mutating func adopt(_ snapshot: Snapshot, resolved: [ResolvedName]) -> [EndpointIndex] {
        clusterOfUpstream.removeAll()
        var used: Set<EndpointIndex> = []
        for upstream in snapshot.upstreams {
            let cluster = register(upstream)
            clusterOfUpstream.append(cluster)
            used.formUnion(clusters[Int(cluster)].members)
        }
        var retired: [EndpointIndex] = []
        for position in endpoints.indices {
            let index = EndpointIndex(rawValue: Int32(position))
            let wasRetired = endpoints[position].isRetired
            endpoints[position].isRetired = !used.contains(index)
            if endpoints[position].isRetired && !wasRetired { retired.append(index) }
        }
        resolve(resolved)
        return retired
    }

    private mutating func register(_ upstream: Upstream) -> ClusterIndex {
        var members: [EndpointIndex] = []
        for address in upstream.endpoints { members.append(register(address, upstream)) }
        if let index = clusterOfName[upstream.name] {
            clusters[Int(index)].upstream = upstream
            clusters[Int(index)].members = members
            return index
        }
        let index = ClusterIndex(rawValue: Int32(clusters.count))
        clusters.append(Cluster(upstream: upstream, members: members))
        clusterOfName[upstream.name] = index
        return index
    }

    private mutating func register(_ address: EndpointAddress, _ upstream: Upstream) -> EndpointIndex {
        let key = EndpointKey(address: address, transport: upstream.transport)
        let transport = EndpointProtocol(address, upstream)
        if let index = known[key] {
            // Its certificate files may have changed.
            endpoints[Int(index)].transport = transport
            return index
        }
        let (host, addresses): (String, [SocketEndpoint]) =
            switch address {
            case .http(let host, let port), .https(let host, let port), .h2c(let host, let port):
                (
                    EndpointText.authority(host, port, isSecure: address.isSecure),
                    SocketEndpoint(literal: host, port: port).map { [$0] } ?? []
                )
            case .unix(let path): ("localhost", SocketEndpoint(path: path).map { [$0] } ?? [])
            case .echo: ("localhost", [])
            }
        let index = EndpointIndex(rawValue: Int32(endpoints.count))
        endpoints.append(
            Endpoint(
                address: address, hostValue: Array(host.utf8), text: Array(EndpointText.url(address).utf8),
                transport: transport, addresses: addresses))
        known[key] = index
        return index
    }

    /// Sets new addresses of host names.
    mutating func resolve(_ names: [ResolvedName]) {
        for name in names where !name.addresses.isEmpty {
            for index in endpoints.indices where endpoints[index].address == name.endpoint {
                endpoints[index].addresses = name.addresses
            }
        }
    }

    /// Notes what health checks have found out.
    mutating func note(_ endpoints: [EndpointHealth], now: Int64) {}

    // MARK: Balancing

    /// Chooses an endpoint of an upstream.
    /// - Parameters:
    ///   - hash: the hash for `balance: hash`.
    ///   - avoiding: the endpoint that just failed the request, if one has.
    mutating func choose(_ cluster: ClusterIndex, hash: UInt64, avoiding: EndpointIndex, now: Int64) -> EndpointIndex? {
        // Read in place: most upstreams have one endpoint, and a copy of the members would be retained and released.
        guard clusters[Int(cluster)].members.count > 1 else { return clusters[Int(cluster)].members.first }
        return chooseAmong(cluster, hash: hash, avoiding: avoiding, now: now)
    }

    @inline(never)
    private mutating func chooseAmong(
        _ cluster: ClusterIndex, hash: UInt64, avoiding: EndpointIndex, now: Int64
    ) -> EndpointIndex? {
        let members = clusters[Int(cluster)].members
        let balance = clusters[Int(cluster)].upstream.balance
        clusters[Int(cluster)].rotation = (clusters[Int(cluster)].rotation &+ 1) % members.count
        let start = balance.isHash ? Int(hash % UInt64(members.count)) : clusters[Int(cluster)].rotation
        var best: EndpointIndex?
        for step in 0..<members.count {
            let index = members[(start + step) % members.count]
            guard index != avoiding, isUsable(index, now) else { continue }
            guard case .leastRequests = balance else { return index }
            if let current = best, endpoints[Int(current)].active <= endpoints[Int(index)].active { continue }
            best = index
        }
        if let best { return best }
        return members.filter { $0 != avoiding }
            .min { left, right in endpoints[Int(left)].ejectedUntil < endpoints[Int(right)].ejectedUntil }
            ?? members.first
    }

    private func isUsable(_ index: EndpointIndex, _ now: Int64) -> Bool {
        endpoints[Int(index)].ejections == 0
            || (endpoints[Int(index)].ejectedUntil <= now && !endpoints[Int(index)].isHalfOpen)
    }

    /// A request is sent to an endpoint; one that was ejected is half-open meanwhile.
    mutating func began(_ index: EndpointIndex) {
        endpoints[Int(index)].active &+= 1
        if endpoints[Int(index)].ejections > 0 { endpoints[Int(index)].isHalfOpen = true }
    }

    /// A request to an endpoint has ended.
    mutating func ended(_ index: EndpointIndex) {
        endpoints[Int(index)].active &-= 1
        endpoints[Int(index)].isHalfOpen = false
    }

    /// An endpoint responded.
    mutating func succeeded(_ index: EndpointIndex) {
        guard endpoints[Int(index)].failures > 0 || endpoints[Int(index)].ejections > 0 else { return }
        endpoints[Int(index)].failures = 0
        endpoints[Int(index)].ejections = 0
        endpoints[Int(index)].isHalfOpen = false
    }

    /// An endpoint failed a request: a refused connection immediately, other failures after five in a row, and a failed
    /// half-open attempt eject it for 1 s, doubling up to 60 s.
    mutating func failed(_ index: EndpointIndex, refused: Bool, now: Int64) {
        let position = Int(index)
        endpoints[position].failures &+= 1
        let wasEjected = endpoints[position].ejections > 0
        guard refused || wasEjected || endpoints[position].failures >= UpstreamDirectory.failureLimit else { return }
        if wasEjected && endpoints[position].ejectedUntil > now { return }
        let span = Int64(1_000_000_000) << Int64(min(endpoints[position].ejections, 6))
        endpoints[position].ejectedUntil = now &+ min(span, UpstreamDirectory.maximumEjection)
        endpoints[position].ejections &+= 1
        endpoints[position].isHalfOpen = false
    }

    /// The next address to connect to; names with several addresses are rotated.
    mutating func nextAddress(of index: EndpointIndex) -> SocketEndpoint? {
        let addresses = endpoints[Int(index)].addresses
        guard !addresses.isEmpty else { return nil }
        endpoints[Int(index)].addressIndex = (endpoints[Int(index)].addressIndex &+ 1) % addresses.count
        return addresses[endpoints[Int(index)].addressIndex]
    }

    /// The state of every endpoint.
    func report(now: Int64) -> [EndpointReport] {
        var reports: [EndpointReport] = []
        for number in clusterOfUpstream {
            let cluster = clusters[Int(number)]
            for index in cluster.members {
                let endpoint = endpoints[Int(index)]
                reports.append(
                    EndpointReport(
                        upstream: cluster.upstream.name, endpoint: String(decoding: endpoint.text, as: UTF8.self),
                        idle: endpoint.idle.count, active: endpoint.active, failures: endpoint.failures,
                        isEjected: endpoint.ejections > 0 && endpoint.ejectedUntil > now))
            }
        }
        return reports
    }
}

/// Endpoints as text.
package enum EndpointText {
    /// `http://127.0.0.1:9000`, `unix:/path`, `builtin:echo`.
    package static func url(_ address: EndpointAddress) -> String {
        switch address {
        case .http(let host, let port): "http://\(authority(host, port, isSecure: false))"
        case .https(let host, let port): "https://\(authority(host, port, isSecure: true))"
        case .h2c(let host, let port): "h2c://\(authority(host, port, isSecure: false))"
        case .unix(let path): "unix:\(path)"
        case .echo: "builtin:echo"
        }
    }

    static func authority(_ host: String, _ port: UInt16, isSecure: Bool) -> String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }
}

extension EndpointAddress {
    /// Whether it uses TLS.
    var isSecure: Bool { if case .https = self { true } else { false } }
}

extension UpstreamConfiguration.Balance {
    var isHash: Bool { if case .hash = self { true } else { false } }
}
