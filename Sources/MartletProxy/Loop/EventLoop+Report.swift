internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletReports
internal import MartletTLS

/// Reports the counters of a loop.
extension EventLoop {
    func report() -> LoopReport {
        var report = counters.report()
        report.tokens.entries = authenticator.decisionCount
        report.tokens.hits = authenticator.hits
        report.tokens.misses = authenticator.misses
        for index in 0..<downstreams.end {
            guard let downstream = downstreams.handle(at: index) else { continue }
            switch downstreams[downstream].kind {
            case .stream: report.http2.openStreams += 1
            case .http2: report.http2.openConnections += 1
            default: break
            }
        }
        report.connections.open = downstreams.count - report.http2.openStreams
        report.openExchanges = exchanges.count
        report.endpoints = directory.report(now: now)
        return report
    }
}
