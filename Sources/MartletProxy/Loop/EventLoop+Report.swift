internal import MartletAuthenticator
internal import MartletResponder

/// Reports the counters of a loop.
extension EventLoop {
    /// - Parameter withEndpoints: whether the state of every endpoint is in it, which takes as long as there are many.
    func report(withEndpoints: Bool) -> LoopReport {
        var report = loop.context.counters.report()
        report.tokens.entries = authenticator.decisionCount
        report.tokens.hits = authenticator.hits
        report.tokens.misses = authenticator.misses
        for index in 0..<loop.downstreams.all.end {
            guard let downstream = loop.downstreams.all.handle(at: index) else { continue }
            switch loop.downstreams[downstream].kind {
            case .stream: report.http2.openStreams += 1
            case .http2: report.http2.openConnections += 1
            default: break
            }
        }
        report.connections.open = loop.downstreams.all.count - report.http2.openStreams
        report.overload.slowTurns = loop.context.overload.load.slowTurns
        report.overload.overloadedLoops = loop.context.overload.load.isOverloaded ? 1 : 0
        report.openExchanges = loop.exchanges.all.count
        loop.context.counters.peers.add(
            to: &report,
            upstreams: loop.upstreams.directory.clusterOfUpstream.map {
                (loop.upstreams.directory.clusters[Int($0)].upstream.name, Int($0))
            })
        if withEndpoints { report.endpoints = loop.upstreams.directory.report(now: loop.now) }
        report.exemplars = loop.context.tracing.report
        return report
    }
}
