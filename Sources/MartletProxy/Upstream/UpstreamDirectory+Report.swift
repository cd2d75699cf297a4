internal import MartletDecisions
internal import MartletIO
internal import MartletResponder
internal import MartletTraffic

/// What the admin pages show of the endpoints.
extension UpstreamDirectory {
    /// The state of every endpoint.
    func report(now: Int64) -> [EndpointReport] {
        var reports: [EndpointReport] = []
        for number in clusterOfUpstream {
            let cluster = clusters[Int(number)]
            let isPanicking = isPanicking(cluster, now)
            for (position, index) in cluster.members.enumerated() {
                let endpoint = endpoints[Int(index)]
                var report = EndpointReport(
                    upstream: cluster.upstream.name, endpoint: String(decoding: endpoint.text, as: UTF8.self),
                    idle: endpoint.idle.count, active: endpoint.active, failures: endpoint.ejection.failures,
                    isEjected: endpoint.ejection.count > 0 && endpoint.ejection.until > now)
                report.address = endpoint.identity.resolved?.description
                report.weight = cluster.weights[position]
                report.isBackup = cluster.candidates[position].isBackup
                report.isPanicking = isPanicking
                (report.state, report.reason, report.age) = state(of: endpoint, in: cluster, now)
                reports.append(report)
            }
        }
        return reports
    }

    /// Whether a request would be sent to any endpoint, because too few are usable.
    private func isPanicking(_ cluster: Cluster, _ now: Int64) -> Bool {
        guard cluster.single.isNone else { return false }
        var selection = EndpointSelection()
        for (position, index) in cluster.members.enumerated() {
            var candidate = cluster.candidates[position]
            candidate.isEjected = !endpoints[Int(index)].ejection.isUsable(at: now)
            selection.count(candidate)
        }
        return selection.pool(panicThreshold: cluster.upstream.traffic.panicThreshold) == .all
    }

    /// The state of an endpoint in one word, why, and for how long in nanoseconds, where that is known.
    private func state(
        of endpoint: Endpoint, in cluster: Cluster, _ now: Int64
    ) -> (EndpointReport.State, reason: String, age: Int64?) {
        let watch = endpoint.watch
        let age = watch.changedAt.map { now &- $0 }
        if watch.isDrained { return (.draining, "taken out by an operator", age) }
        if !watch.isHealthy { return (.unhealthy, watch.reason, age) }
        let ejection = endpoint.ejection
        if ejection.count > 0 {
            let left = max(ejection.until &- now, 0) / 1_000_000
            let reason = ejection.failures == 1 ? "1 failure" : "\(ejection.failures) failures in a row"
            return (.ejected, left > 0 ? "\(reason), for another \(left) ms" : "\(reason), one request tries it", nil)
        }
        let span = cluster.upstream.traffic.slowStart
        if span > 0, let start = watch.startedAt, now &- start < span {
            return (.slowStart, "its share grows", now &- start)
        }
        return (.healthy, watch.reason, age)
    }
}
