internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletResponder
internal import MartletRouter

/// Deadlines of a downstream connection while a request is under way.
extension EventLoop {
    /// Requires progress of a body: some byte within `body_idle`, and `body_min_rate` on average.
    mutating func armBody(_ exchange: Handle<Exchange>) {
        exchanges[exchange].progress.restart(now: now)
        armNextCheck(exchange)
    }

    private mutating func armNextCheck(_ exchange: Handle<Exchange>) {
        let deadline = exchanges[exchange].progress.nextCheck(
            now: now, progressRules, awaitsContinue: exchanges[exchange].awaitsContinue)
        arm(downstream: exchanges[exchange].downstream, at: deadline)
    }

    private var progressRules: BodyProgress.Rules {
        BodyProgress.Rules(
            idleTimeout: snapshot.loopTimeouts.bodyIdle, minimumRate: snapshot.limits.bodyMinimumRate)
    }

    /// The deadline of a downstream connection with a request in progress has passed.
    mutating func exchangeTimedOut(_ exchange: Handle<Exchange>) {
        let downstream = exchanges[exchange].downstream
        switch requestDeadline(of: exchange).action {
        case .ignore: return
        case .probePeer:
            downstreams[downstream].probe.isPending = false
            probePeer(downstream)
        case .failLocal: fail(exchange, .localFailed)
        case .checkOutput: if !hasDrainedOutput(downstream) { writeTimedOut(downstream) }
        case .sendContinue: sendOwnContinue(exchange)
        case .checkPause: checkPause(exchange)
        case .checkCall: checkCall(exchange)
        case .checkProgress:
            switch exchanges[exchange].progress.check(now: now, progressRules) {
            case .arriving: armNextCheck(exchange)
            case .timedOut: fail(exchange, .requestTimeout)
            }
        }
    }

    private func requestDeadline(of exchange: Handle<Exchange>) -> RequestDeadline {
        let downstream = exchanges[exchange].downstream
        return RequestDeadline(
            isTunnel: isTunnel(exchange),
            isProbePending: downstreams[downstream].probe.isPending,
            isComplete: exchanges[exchange].body.isComplete,
            isLocal: exchanges[exchange].responder == .local,
            hasResponseStarted: exchanges[exchange].response.hasStarted,
            awaitsContinue: exchanges[exchange].awaitsContinue,
            isPaused: downstreams[downstream].isPaused,
            isCall: exchanges[exchange].request.isGRPC && !exchanges[exchange].upstream.isNone)
    }

    private mutating func sendOwnContinue(_ exchange: Handle<Exchange>) {
        exchanges[exchange].request.hasContinued = true
        armBody(exchange)
        sendContinue(exchange)
    }

    private mutating func checkCall(_ exchange: Handle<Exchange>) {
        let downstream = exchanges[exchange].downstream
        hasDrainedOutput(downstream) || isReading(downstream) ? armBody(exchange) : writeTimedOut(downstream)
    }

    /// A client that reads nothing either may be what its upstream waits for.
    private mutating func checkPause(_ exchange: Handle<Exchange>) {
        let downstream = exchanges[exchange].downstream
        let upstream = exchanges[exchange].upstream
        let reads = downstreams[downstream].isStream ? hasSentMore(downstream) : isReading(downstream)
        let isUpstreamPaused = !upstream.isNone && upstreams[upstream].isPaused
        guard !RequestDeadline.isStuck(isUpstreamPaused: isUpstreamPaused, isReading: reads) else {
            return abandon(downstream)
        }
        exchanges[exchange].progress.begin(now: now)
        armBody(exchange)
    }

    private func isReading(_ downstream: Handle<DownstreamConnection>) -> Bool {
        RequestDeadline.isReading(
            lastWriteAt: downstreams[downstream].transport.lastWriteAt, now: now,
            timeout: snapshot.loopTimeouts.bodyIdle)
    }
}
