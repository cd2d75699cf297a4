internal import MartletCore
internal import MartletDecisions

/// Deadlines of an exchange, which its two connections keep.
extension Exchange {
    /// Requires progress of a body: some byte within `body_idle`, and `body_min_rate` on average.
    mutating func armBody(_ downstreams: inout DownstreamConnections, _ context: inout LoopContext) {
        pace.restart(now: context.now)
        armNextCheck(&downstreams, &context)
    }

    mutating func armNextCheck(_ downstreams: inout DownstreamConnections, _ context: inout LoopContext) {
        let deadline = pace.nextCheck(
            now: context.now, context.paceRules, awaitsContinue: awaitsContinue)
        downstreams.arm(downstream, at: deadline, &context)
    }

    /// Sets the response timeout, which starts when the request is complete; until then the idle timeout counts.
    mutating func armResponseTimeout(
        _ upstream: Handle<UpstreamConnection>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let timeout =
            body.isComplete
            ? forwarding.responseTimeout : forwarding.idleTimeout
        forwarding.sentAt = context.now
        upstreams.arm(upstream, at: context.now &+ timeout, &context)
    }

    mutating func armResponseIdle(
        _ upstream: Handle<UpstreamConnection>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        upstreams.arm(upstream, at: context.now &+ forwarding.idleTimeout, &context)
    }

    mutating func expectBody(_ downstreams: inout DownstreamConnections, _ context: inout LoopContext) {
        body.expect()
        armBody(&downstreams, &context)
    }
}

extension Exchange {
    /// Whether the client waits for 100 (Continue), and neither the upstream nor the gateway has sent it.
    @inline(__always)
    var awaitsContinue: Bool {
        request.expectsContinue && !request.hasContinued && body.count == 0 && responder == .upstream
            && !response.hasStarted
    }
}
