internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder
internal import MartletTraffic

/// Chooses an endpoint, connects to it, and retries with another one.
extension RequestForwarder {
    /// Sends the request to an endpoint: over an idle connection, or a new one.
    static func sendToEndpoint(
        _ exchange: Handle<Exchange>, avoiding: EndpointIndex, reusing: Bool, _ loop: inout LoopState
    ) {
        loop.exchanges[exchange].forwarding.attempts &+= 1
        guard
            let endpoint = loop.upstreams.directory.choose(
                loop.exchanges[exchange].forwarding.cluster, hash: loop.exchanges[exchange].forwarding.hash,
                avoiding: avoiding,
                now: loop.now)
        else { return loop.reject(exchange, .noUsableEndpoint) }
        loop.exchanges[exchange].forwarding.endpoint = endpoint
        if !loop.exchanges[exchange].tunnel.isNone, !loop.exchanges[exchange].carriesUpgrades(&loop.upstreams) {
            return loop.reject(exchange, .upgradeNotCarried)
        }
        if case .echo = loop.upstreams.directory.endpoints[Int(endpoint)].address {
            // It shows the head that was written for the upstream.
            return unsafe beginLocal(
                exchange, UnsafeBufferPointer(start: nil, count: 0), EchoHandler.respond, &loop)
        }
        if loop.upstreams.directory.isCounted(endpoint), !mayCarry(exchange, avoiding, &loop) { return }
        loop.exchanges[exchange].fillInHost(endpoint, &loop.upstreams, &loop.context)
        if loop.context.tracing.isOn {
            RequestTracing.beginAttempt(of: exchange, to: endpoint, &loop.exchanges, &loop.upstreams, &loop.context)
        }
        if loop.upstreams.directory.endpoints[Int(endpoint)].transport.isHTTP2 {
            return sendOverHTTP2(exchange, to: endpoint, &loop)
        }
        if reusing, let upstream = loop.upstreams.directory.takeIdle(endpoint) {
            if loop.upstreams.descriptors.isScarce, !mayReuse(upstream, for: exchange, &loop) { return }
            return loop.attach(exchange, to: upstream)
        }
        if loop.upstreams.directory.isCounted(endpoint), !mayConnect(exchange, to: endpoint, avoiding, &loop) { return }
        connectAndAttach(exchange, to: endpoint, &loop)
    }

    private static func connectAndAttach(
        _ exchange: Handle<Exchange>, to endpoint: EndpointIndex, _ loop: inout LoopState
    ) {
        guard let charge = takeDescriptor(for: exchange, &loop) else { return }
        switch loop.upstreams.connect(to: endpoint, .http1, charge, &loop.context) {
        case .success(let upstream): loop.attach(exchange, to: upstream)
        case .failure(let failure): retryOrReject(exchange, failure, .nothingSent, &loop)
        }
    }

    /// Retries with another endpoint where that is safe, otherwise responds with the failure.
    static func retryOrReject(
        _ exchange: Handle<Exchange>, _ failure: Failure, _ progress: FailedAttempt.Progress, _ loop: inout LoopState
    ) {
        guard retry(exchange, failure.reason, progress, &loop) else { return loop.fail(exchange, failure) }
    }

    /// Sends a request again, now or later, where that is safe.
    /// - Returns: whether it is.
    static func retry(
        _ exchange: Handle<Exchange>, _ reason: ErrorCode, _ progress: FailedAttempt.Progress, _ loop: inout LoopState
    ) -> Bool {
        switch loop.exchanges[exchange].failedAttempt(progress, &loop.upstreams).decision {
        case .fail: return false
        case .retry(let avoiding, let reusing):
            noteRetry(exchange, reason, &loop.exchanges, &loop.upstreams, &loop.context)
            sendToEndpoint(exchange, avoiding: avoiding, reusing: reusing, &loop)
        case .retryWithinBudget(let avoiding, let reusing, let waits):
            let cluster = Int(loop.exchanges[exchange].forwarding.cluster)
            guard let policy = loop.upstreams.directory.clusters[cluster].upstream.traffic.retries,
                let counters = loop.upstreams.directory.clusters[cluster].upstream.counters,
                counters.budget.takeRetry(policy.budget, at: loop.now)
            else { return false }
            noteRetry(exchange, reason, &loop.exchanges, &loop.upstreams, &loop.context)
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            let time =
                waits
                ? policy.wait(
                    before: loop.exchanges[exchange].forwarding.attempts, random: .random(in: .min ... .max)) : 0
            guard time > 0 else {
                sendToEndpoint(exchange, avoiding: avoiding, reusing: reusing, &loop)
                return true
            }
            wait(
                exchange, .backoff, until: loop.now &+ time, avoiding: avoiding, &loop.exchanges, &loop.downstreams,
                &loop.waiting)
        }
        return true
    }

    /// The connection is ready: sends the request.
    static func upstreamReady(_ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        if loop.upstreams[upstream].kind == .http2 { return startUpstreamFrames(upstream, &loop) }
        loop.upstreams[upstream].expectResponse()
        loop.exchanges[loop.upstreams[upstream].exchange].armResponseTimeout(upstream, &loop.upstreams, &loop.context)
        loop.flush(upstream: upstream)
    }

    /// The connection could not be established, or is not trusted.
    static func connectFailed(_ upstream: Handle<UpstreamConnection>, _ failure: Failure, _ loop: inout LoopState) {
        if loop.upstreams[upstream].kind == .http2 { return connectionFailed(upstream, failure, &loop) }
        let exchange = loop.upstreams[upstream].exchange
        loop.upstreams.directory.failed(loop.upstreams[upstream].endpoint, refused: true, now: loop.now)
        loop.exchanges[exchange].reclaimBody(&loop.upstreams)
        loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
        retryOrReject(exchange, failure, .nothingSent, &loop)
    }

    private static func noteRetry(
        _ exchange: Handle<Exchange>, _ reason: ErrorCode, _ exchanges: inout Exchanges,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        if context.tracing.isOn { RequestTracing.attemptFailed(of: exchange, reason, &exchanges, &context) }
        if context.debug.isOn { logRetry(exchange, reason, &exchanges, &upstreams, &context) }
    }

    private static func logRetry(
        _ exchange: Handle<Exchange>, _ reason: ErrorCode, _ exchanges: inout Exchanges,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let endpoint = exchanges[exchange].forwarding.endpoint
        context.debug.retry(
            requestID: unsafe String(decoding: exchanges[exchange].record.texts.requestID, as: UTF8.self),
            upstream: endpoint.isNone
                ? "" : String(decoding: upstreams.directory.endpoints[Int(endpoint)].text, as: UTF8.self),
            reason: reason)
    }
}
