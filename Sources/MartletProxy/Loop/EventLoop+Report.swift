internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// Reports the counters of a loop.
extension EventLoop {
    func report() -> LoopReport {
        var report = counters.report()
        report.tokenEntries = authenticator.decisionCount
        report.tokenHits = authenticator.hits
        report.tokenMisses = authenticator.misses
        for index in 0..<downstreams.end {
            guard let downstream = downstreams.handle(at: index) else { continue }
            switch downstreams[downstream].kind {
            case .stream: report.openStreams += 1
            case .http2: report.openHTTP2Connections += 1
            default: break
            }
        }
        report.openConnections = downstreams.count - report.openStreams
        report.openExchanges = exchanges.count
        report.endpoints = directory.report(now: now)
        return report
    }
}
