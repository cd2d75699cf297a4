internal import MartletDecisions
internal import MartletResponder

/// Deadlines of a downstream connection while a request is in progress.
extension RequestForwarder {
    /// The deadline of a downstream connection with a request in progress has passed.
    static func exchangeTimedOut(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        let downstream = loop.exchanges[exchange].downstream
        switch loop.exchanges.requestDeadline(of: exchange, &loop.downstreams).action {
        case .ignore: return
        case .probePeer:
            loop.downstreams[downstream].probe.isPending = false
            loop.probePeer(downstream)
        case .failLocal: loop.fail(exchange, .localFailed)
        case .checkOutput:
            if !loop.downstreams.hasDrainedOutput(downstream, &loop.exchanges, &loop.upstreams) {
                loop.writeTimedOut(downstream)
            }
        case .sendContinue: sendOwnContinue(exchange, &loop)
        case .checkPause: checkPause(exchange, &loop)
        case .checkCall: checkCall(exchange, &loop)
        case .checkProgress:
            switch loop.exchanges[exchange].pace.check(now: loop.now, loop.context.paceRules) {
            case .arriving: loop.exchanges[exchange].armNextCheck(&loop.downstreams, &loop.context)
            case .timedOut: loop.fail(exchange, .requestTimeout)
            }
        }
    }

    private static func sendOwnContinue(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        loop.exchanges[exchange].request.hasContinued = true
        loop.exchanges[exchange].armBody(&loop.downstreams, &loop.context)
        loop.sendContinue(exchange)
    }

    private static func checkCall(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        let downstream = loop.exchanges[exchange].downstream
        let isFlushed = loop.downstreams.hasDrainedOutput(downstream, &loop.exchanges, &loop.upstreams)
        guard isFlushed || loop.downstreams.isReading(downstream, &loop.context) else {
            return loop.writeTimedOut(downstream)
        }
        // No rate is required of a call.
        loop.exchanges[exchange].pace.begin(now: loop.now)
        loop.exchanges[exchange].armBody(&loop.downstreams, &loop.context)
    }

    /// A client that reads nothing either may be what its upstream waits for.
    private static func checkPause(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        let downstream = loop.exchanges[exchange].downstream
        let upstream = loop.exchanges[exchange].upstream
        let reads =
            loop.downstreams[downstream].isStream
            ? loop.downstreams.hasSentMore(downstream) : loop.downstreams.isReading(downstream, &loop.context)
        let isUpstreamPaused = !upstream.isNone && loop.upstreams[upstream].isPaused
        guard !RequestDeadline.isStuck(isUpstreamPaused: isUpstreamPaused, isReading: reads) else {
            return loop.abandon(downstream)
        }
        loop.exchanges[exchange].pace.begin(now: loop.now)
        loop.exchanges[exchange].armBody(&loop.downstreams, &loop.context)
    }
}
