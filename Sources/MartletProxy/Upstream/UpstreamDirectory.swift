internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletIO
internal import MartletTraffic

/// The endpoints of a loop's upstreams: addresses, load, and recent failures.
struct UpstreamDirectory: ~Copyable {
    var endpoints = FlatList<Endpoint>()
    private var known: [EndpointKey: EndpointIndex] = [:]
    /// Upstreams by an index that is stable across reloads, because it is assigned by name.
    var clusters = FlatList<Cluster>()
    private(set) var clusterOfName: [String: ClusterIndex] = [:]
    /// For each upstream of the current snapshot, its index in `clusters`.
    private(set) var clusterOfUpstream: [ClusterIndex] = []
    /// The addresses of host names, as they were resolved last.
    private var resolved: [EndpointIdentity: [SocketEndpoint]] = [:]
    /// Endpoints that the operator has taken out of use.
    var drained: Set<EndpointIdentity> = []
    /// Logs ejections; `nil` for the loops of other listeners.
    var ejections: LoopEjections?
    /// Endpoints that have left the configuration and may still have requests.
    private var retired: [EndpointIndex] = []
    /// When the time of the first of them to finish is over.
    private(set) var nextCut = Int64.max
    /// Slots of endpoints that are forgotten.
    private var free: [EndpointIndex] = []

    /// How long a slot is not used again after its last request, in nanoseconds: logs may still name its endpoint.
    private static let forgetAfter: Int64 = 60_000_000_000

    /// Adopts a new configuration; endpoints that stay keep their connections and their failures.
    /// - Returns: the endpoints that are not used any more.
    @discardableResult
    mutating func adopt(_ snapshot: Snapshot, resolved names: [ResolvedName], now: Int64) -> [EndpointIndex] {
        for name in names { resolved[name.identity] = name.addresses }
        let used = Set(
            snapshot.upstreams.flatMap { upstream in
                upstream.endpoints.map { EndpointIdentity(upstream: upstream.name, address: $0) }
            })
        resolved = resolved.filter { used.contains($0.key) }
        clusterOfUpstream.removeAll()
        for upstream in snapshot.upstreams {
            let cluster = register(upstream)
            clusterOfUpstream.append(cluster)
            fill(cluster, now)
        }
        let current = Set(clusterOfUpstream)
        for position in clusters.indices {
            let cluster = ClusterIndex(rawValue: Int32(position))
            if !current.contains(cluster) { clusters[position].members = [] }
        }
        return retireUnused(now)
    }

    /// Sets new addresses of host names.
    /// - Returns: the endpoints that are not used any more.
    @discardableResult
    mutating func resolve(_ names: [ResolvedName], now: Int64) -> [EndpointIndex] {
        var changed: Set<String> = []
        for name in names where resolved[name.identity] != name.addresses {
            resolved[name.identity] = name.addresses
            changed.insert(name.upstream)
        }
        guard !changed.isEmpty else { return [] }
        for cluster in clusterOfUpstream where changed.contains(clusters[Int(cluster)].upstream.name) {
            fill(cluster, now)
        }
        return retireUnused(now)
    }

    private mutating func register(_ upstream: Upstream) -> ClusterIndex {
        if let index = clusterOfName[upstream.name] {
            clusters[Int(index)].upstream = upstream
            return index
        }
        let index = ClusterIndex(rawValue: Int32(clusters.count))
        clusters.append(Cluster(upstream: upstream, members: []))
        clusterOfName[upstream.name] = index
        return index
    }

    /// Fills an upstream with the endpoints that its members are: one each, or one for each address of a name.
    private mutating func fill(_ cluster: ClusterIndex, _ now: Int64) {
        let upstream = clusters[Int(cluster)].upstream
        let isNew = clusters[Int(cluster)].members.isEmpty
        var members: [EndpointIndex] = []
        var weights: [Int] = []
        var candidates: [EndpointCandidate] = []
        for member in upstream.members {
            var candidate = EndpointCandidate()
            candidate.weight = Int64(member.weight) &* SlowStart.scale
            candidate.isBackup = member.isBackup
            for (identity, addresses) in identities(of: member.address.value, in: upstream) {
                let index = register(identity, addresses, upstream, cluster)
                if !isNew, endpoints[Int(index)].watch.retiredAt == nil, !clusters[Int(cluster)].members.contains(index)
                {
                    endpoints[Int(index)].watch.start(at: now)
                }
                endpoints[Int(index)].watch.drain(drained.contains(identity.whole), at: now)
                candidate.hash = endpoints[Int(index)].hash
                members.append(index)
                weights.append(member.weight)
                candidates.append(candidate)
            }
        }
        let keepsOrder = members == clusters[Int(cluster)].members
        clusters[Int(cluster)].members = members
        clusters[Int(cluster)].hasStreams = members.contains { endpoints[Int($0)].transport.isHTTP2 }
        clusters[Int(cluster)].weights = weights
        clusters[Int(cluster)].candidates = candidates
        if !keepsOrder { clusters[Int(cluster)].balancer = Balancer() }
        refresh(cluster)
    }

    /// The endpoints of a member, with the addresses to connect to.
    private func identities(
        of address: EndpointAddress, in upstream: Upstream
    ) -> [(EndpointIdentity, [SocketEndpoint])] {
        let whole = EndpointIdentity(upstream: upstream.name, address: address)
        switch address {
        case .unix(let path): return [(whole, SocketEndpoint(path: path).map { [$0] } ?? [])]
        case .echo: return [(whole, [])]
        case .http(let host, let port), .https(let host, let port), .h2c(let host, let port):
            if let literal = SocketEndpoint(literal: host, port: port) { return [(whole, [literal])] }
            let rules = upstream.policies.resolution
            let addresses = (resolved[whole] ?? []).filter { $0.belongs(to: rules.family) }
            guard rules.usesAllAddresses, !addresses.isEmpty else { return [(whole, Array(addresses.prefix(1)))] }
            return addresses.map {
                (EndpointIdentity(upstream: upstream.name, address: address, resolved: $0), [$0])
            }
        }
    }

    private mutating func register(
        _ identity: EndpointIdentity, _ addresses: [SocketEndpoint], _ upstream: Upstream, _ cluster: ClusterIndex
    ) -> EndpointIndex {
        let key = EndpointKey(identity: identity, transport: upstream.transport)
        let index = known[key] ?? insert(identity, EndpointProtocol(identity.address, upstream), key)
        let position = Int(index)
        // Its certificate files may have changed.
        endpoints[position].transport = EndpointProtocol(identity.address, upstream)
        endpoints[position].addresses = addresses
        endpoints[position].cluster = cluster
        endpoints[position].isWatched =
            upstream.traffic.ejection.rate != nil || endpoints[position].ejection != Ejection()
        return index
    }

    private mutating func insert(
        _ identity: EndpointIdentity, _ transport: EndpointProtocol, _ key: EndpointKey
    ) -> EndpointIndex {
        let url = EndpointText.url(identity.address)
        let name = identity.resolved.map { "\(url) \($0.description)" } ?? url
        let endpoint = Endpoint(
            identity: identity, hostValue: Array(EndpointText.host(identity.address).utf8), text: Array(url.utf8),
            hash: RendezvousHash.hash(name.utf8), transport: transport, addresses: [])
        let index: EndpointIndex
        if let slot = free.popLast() {
            endpoints[Int(slot)] = endpoint
            index = slot
        } else {
            index = EndpointIndex(rawValue: Int32(endpoints.count))
            endpoints.append(endpoint)
        }
        known[key] = index
        return index
    }

    /// Retires the endpoints that no upstream has any more.
    /// - Returns: those that one had before.
    private mutating func retireUnused(_ now: Int64) -> [EndpointIndex] {
        forget(now)
        var used: Set<EndpointIndex> = []
        for cluster in clusterOfUpstream { used.formUnion(clusters[Int(cluster)].members) }
        var new: [EndpointIndex] = []
        for index in known.values {
            let isUsed = used.contains(index)
            let wasRetired = endpoints[Int(index)].isRetired
            endpoints[Int(index)].isRetired = !isUsed
            if isUsed {
                endpoints[Int(index)].watch.retiredAt = nil
            } else if !wasRetired {
                endpoints[Int(index)].watch.retiredAt = now
                ejections?.watch.forget(endpoints[Int(index)].identity)
                new.append(index)
            }
        }
        new.sort { $0.rawValue < $1.rawValue }
        retired = retired.filter { endpoints[Int($0)].isRetired } + new
        setNextCut()
        return new
    }

    /// When an endpoint that has left the configuration has to be done with its requests.
    private func cut(of index: EndpointIndex) -> Int64 {
        let endpoint = endpoints[Int(index)]
        return (endpoint.watch.retiredAt ?? .max) &+ clusters[Int(endpoint.cluster)].upstream.traffic.drain
    }

    private mutating func setNextCut() {
        nextCut = .max
        for index in retired where endpoints[Int(index)].active > 0 { nextCut = min(nextCut, cut(of: index)) }
    }

    /// Frees the slots of endpoints that left long ago and have nothing any more: names whose addresses change often
    /// would fill the memory.
    private mutating func forget(_ now: Int64) {
        var kept: [EndpointIndex] = []
        for index in retired where endpoints[Int(index)].isRetired {
            let endpoint = endpoints[Int(index)]
            let isOver = endpoint.active == 0 && endpoint.idle.isEmpty && endpoint.connections.isEmpty
            guard isOver, let left = endpoint.watch.retiredAt, now &- left > UpstreamDirectory.forgetAfter else {
                kept.append(index)
                continue
            }
            if let key = known.first(where: { $0.value == index })?.key { known[key] = nil }
            free.append(index)
        }
        retired = kept
    }

    /// The endpoints that have left the configuration and whose time to finish is over; each is named once a second
    /// while it has requests.
    mutating func takeOverdue(_ now: Int64) -> Set<EndpointIndex> {
        let overdue = retired.filter { endpoints[Int($0)].active > 0 && cut(of: $0) <= now }
        setNextCut()
        if !overdue.isEmpty { nextCut = now &+ 1_000_000_000 }
        return Set(overdue)
    }

    /// What an endpoint is found by, in other loops too.
    func key(of position: Int) -> EndpointKey {
        EndpointKey(
            identity: endpoints[position].identity,
            transport: clusters[Int(endpoints[position].cluster)].upstream.transport)
    }

    /// The endpoint of a key, if its connections may be idle.
    func endpoint(of key: EndpointKey) -> EndpointIndex? {
        guard let index = known[key], endpoints[Int(index)].mayIdle else { return nil }
        return index
    }

    /// The next address to connect to; several addresses are used in turn.
    mutating func nextAddress(of index: EndpointIndex) -> SocketEndpoint? {
        let addresses = endpoints[Int(index)].addresses
        guard !addresses.isEmpty else { return nil }
        endpoints[Int(index)].addressIndex = (endpoints[Int(index)].addressIndex &+ 1) % addresses.count
        return addresses[endpoints[Int(index)].addressIndex]
    }
}

extension ResolvedName {
    fileprivate var identity: EndpointIdentity { EndpointIdentity(upstream: upstream, address: endpoint) }
}

extension SocketEndpoint {
    fileprivate func belongs(to family: ResolutionConfiguration.Family) -> Bool {
        switch family {
        case .any: true
        case .ipv4: !isIPv6
        case .ipv6: isIPv6
        }
    }
}
