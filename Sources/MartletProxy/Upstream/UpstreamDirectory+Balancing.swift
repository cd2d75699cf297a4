internal import MartletConfig
internal import MartletDecisions
internal import MartletTraffic

/// Which endpoint gets a request, and what its outcome says of the endpoint.
extension UpstreamDirectory {
    /// Chooses an endpoint of an upstream.
    /// - Parameters:
    ///   - hash: the hash for `balance: hash…`; 0 if the request has no such value.
    ///   - avoiding: the endpoint that just failed the request, if one has.
    mutating func choose(_ cluster: ClusterIndex, hash: UInt64, avoiding: EndpointIndex, now: Int64) -> EndpointIndex? {
        let single = clusters[Int(cluster)].single
        guard single.isNone else { return single }
        return chooseAmong(cluster, hash: hash, avoiding: avoiding, now: now)
    }

    @inline(never)
    private mutating func chooseAmong(
        _ cluster: ClusterIndex, hash: UInt64, avoiding: EndpointIndex, now: Int64
    ) -> EndpointIndex? {
        let position = Int(cluster)
        let avoided = avoiding.isNone ? nil : clusters[position].members.firstIndex(of: avoiding)
        let chosen = unsafe clusters[position].candidates.withUnsafeMutableBufferPointer { candidates in
            unsafe updateCandidates(candidates, of: position, now)
            return unsafe clusters[position].balancer.choose(
                clusters[position].upstream.traffic.balance, hash: hash == 0 ? nil : hash, avoiding: avoided,
                panicThreshold: clusters[position].upstream.traffic.panicThreshold,
                among: UnsafeBufferPointer(candidates).span)
        }
        guard let chosen else { return leastEjected(cluster, avoiding: avoiding) }
        return clusters[position].members[chosen.position]
    }

    /// Brings what changes with every request up to date.
    @inline(__always)
    private func updateCandidates(
        _ candidates: UnsafeMutableBufferPointer<EndpointCandidate>, of position: Int, _ now: Int64
    ) {
        precondition(clusters[position].members.count <= candidates.count)
        let slowStart = clusters[position].upstream.traffic.slowStart
        for member in clusters[position].members.indices {
            let index = Int(clusters[position].members[member])
            unsafe candidates[member].active = endpoints[index].active
            unsafe candidates[member].isEjected = !endpoints[index].ejection.isUsable(at: now)
            guard slowStart > 0 else { continue }
            unsafe candidates[member].weight = SlowStart.weight(
                clusters[position].weights[member], since: endpoints[index].watch.startedAt, span: slowStart, at: now)
        }
    }

    /// Without a panic threshold: of the healthy endpoints, all of which are ejected, the one that returns first.
    private func leastEjected(_ cluster: ClusterIndex, avoiding: EndpointIndex) -> EndpointIndex? {
        let members = clusters[Int(cluster)].members.filter { member in
            endpoints[Int(member)].watch.isHealthy && !endpoints[Int(member)].watch.isDrained
        }
        let others = members.filter { $0 != avoiding }
        return (others.isEmpty ? members : others).min { left, right in
            endpoints[Int(left)].ejection.until < endpoints[Int(right)].ejection.until
        }
    }

    /// Brings what health checks and the operator say up to date.
    mutating func refresh(_ cluster: ClusterIndex) {
        let position = Int(cluster)
        for member in clusters[position].members.indices {
            let watch = endpoints[Int(clusters[position].members[member])].watch
            let isOut = watch.isDrained || clusters[position].weights[member] == 0
            clusters[position].candidates[member].condition =
                isOut ? .drained : watch.isHealthy ? .healthy : .unhealthy
        }
        let isSingle =
            clusters[position].members.count == 1 && clusters[position].candidates[0].condition != .drained
        clusters[position].single = isSingle ? clusters[position].members[0] : .none
    }

    /// Notes what health checks have found out.
    mutating func note(_ health: [EndpointHealth], now: Int64) {
        var changed: Set<ClusterIndex> = []
        for one in health {
            guard let cluster = clusterOfName[one.endpoint.upstream] else { continue }
            for index in clusters[Int(cluster)].members where endpoints[Int(index)].identity.matches(one.endpoint) {
                let isNew = endpoints[Int(index)].watch.note(isHealthy: one.isHealthy, reason: one.reason, at: now)
                if isNew { changed.insert(cluster) }
            }
        }
        for cluster in changed { refresh(cluster) }
    }

    /// Has exactly these endpoints be out of use, by their upstreams and URLs: all addresses of a name.
    mutating func setDrained(_ drained: Set<EndpointIdentity>, now: Int64) {
        self.drained = drained
        for cluster in clusterOfUpstream {
            for index in clusters[Int(cluster)].members {
                let isDrained = drained.contains(endpoints[Int(index)].identity.whole)
                endpoints[Int(index)].watch.drain(isDrained, at: now)
            }
            refresh(cluster)
        }
    }
}

/// The outcomes of requests.
extension UpstreamDirectory {
    /// A request is sent to an endpoint; one that was ejected is half-open meanwhile.
    mutating func began(_ index: EndpointIndex) {
        endpoints[Int(index)].active &+= 1
        if endpoints[Int(index)].isWatched { endpoints[Int(index)].ejection.began() }
    }

    /// A request to an endpoint has ended.
    mutating func ended(_ index: EndpointIndex) {
        endpoints[Int(index)].active &-= 1
        if endpoints[Int(index)].isWatched { endpoints[Int(index)].ejection.ended() }
    }

    /// An endpoint responded.
    @inline(__always)
    mutating func succeeded(_ index: EndpointIndex, now: Int64) {
        guard endpoints[Int(index)].isWatched else { return }
        noteSuccess(index, now)
    }

    @inline(never)
    private mutating func noteSuccess(_ index: EndpointIndex, _ now: Int64) {
        let position = Int(index)
        let cluster = Int(endpoints[position].cluster)
        if let policy = clusters[cluster].upstream.traffic.ejection.rate {
            endpoints[position].rate.count(isFailure: false, at: now, policy)
        }
        if endpoints[position].ejection.succeeded() { noteReturn(position, now) }
        endpoints[position].isWatched = clusters[cluster].upstream.traffic.ejection.rate != nil
    }

    // Not in `noteSuccess`: it happens rarely.
    @inline(never)
    private mutating func noteReturn(_ position: Int, _ now: Int64) {
        endpoints[position].watch.start(at: now)
        guard let ejections else { return }
        ejections.watch.responded(endpoints[position].identity, in: ejections.loop, at: now)
    }

    /// An endpoint failed a request: a refused connection immediately, other failures after some in a row or by their
    /// rate, and a failed half-open attempt eject it for a while.
    mutating func failed(_ index: EndpointIndex, refused: Bool, now: Int64) {
        let position = Int(index)
        let cluster = Int(endpoints[position].cluster)
        let policy = clusters[cluster].upstream.traffic.ejection
        var exceedsRate = false
        if let rate = policy.rate {
            endpoints[position].rate.count(isFailure: true, at: now, rate)
            exceedsRate = endpoints[position].rate.exceeds(rate)
        }
        endpoints[position].isWatched = true
        let wasEjected = endpoints[position].ejection.count > 0
        let ejects = endpoints[position].ejection.failed(
            refused ? .refused : .failed, exceedsRate: exceedsRate,
            mayEject: wasEjected || mayEject(from: cluster, policy, now), by: policy, at: now)
        guard ejects else { return }
        // Its rate is counted anew after the ejection.
        endpoints[position].rate = ErrorRate()
        // A single endpoint is used all the same; one that has left the configuration is used no more.
        guard let ejections, clusters[cluster].members.count > 1, !endpoints[position].isRetired else { return }
        ejections.watch.ejected(
            endpoints[position].identity, by: ejections.loop,
            reason: refused ? "refused" : exceedsRate ? "error rate" : "consecutive failures",
            failures: endpoints[position].ejection.failures, at: now)
    }

    /// Whether one more endpoint of an upstream may be out of use.
    private func mayEject(from cluster: Int, _ policy: EjectionPolicy, _ now: Int64) -> Bool {
        guard policy.maximumEjected < 100 else { return true }
        let members = clusters[cluster].members
        let out = members.reduce(0) { count, member in
            let endpoint = endpoints[Int(member)]
            let isIn = endpoint.watch.isHealthy && !endpoint.watch.isDrained && endpoint.ejection.isUsable(at: now)
            return isIn ? count : count + 1
        }
        return policy.mayEject(out: out, of: members.count)
    }
}
