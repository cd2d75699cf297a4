internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletRouter

/// Deadlines of a downstream connection while a request is under way.
extension EventLoop {
    /// Requires progress of a body: some byte within `body_idle`, and `body_min_rate` on average.
    mutating func armBody(_ exchange: Int32) {
        exchanges[exchange].receivedAt = now
        armNextCheck(exchange)
    }

    mutating func armNextCheck(_ exchange: Int32) {
        if awaitsContinue(exchange) {
            return arm(downstream: exchanges[exchange].downstream, at: now &+ EventLoop.continueTimeout)
        }
        let rateCheck = exchanges[exchange].windowStart &+ EventLoop.rateWindow
        let idle = exchanges[exchange].receivedAt &+ snapshot.loopTimeouts.bodyIdle
        arm(
            downstream: exchanges[exchange].downstream,
            at: snapshot.limits.bodyMinimumRate > 0 ? min(rateCheck, idle) : idle)
    }

    /// How long an upstream may take to send 100 (Continue) before the gateway sends it: a client would wait forever
    /// for an upstream that never does (RFC 9110 §10.1.1).
    static let continueTimeout: Int64 = 1_000_000_000

    func awaitsContinue(_ exchange: Int32) -> Bool {
        exchanges[exchange].expectsContinue && !exchanges[exchange].hasContinued && exchanges[exchange].bodyBytes == 0
            && exchanges[exchange].responder == .upstream && !exchanges[exchange].hasResponseStarted
    }

    mutating func sendOwnContinue(_ exchange: Int32) {
        exchanges[exchange].hasContinued = true
        armBody(exchange)
        sendContinue(exchange)
    }

    /// The deadline of a downstream connection with a request in progress has passed.
    mutating func exchangeTimedOut(_ exchange: Int32) {
        let downstream = exchanges[exchange].downstream
        if isTunnel(exchange) { return }
        if downstreams[downstream].isProbePending {
            downstreams[downstream].isProbePending = false
            return probePeer(downstream)
        }
        if exchanges[exchange].isRequestComplete {
            if exchanges[exchange].responder == .local, !exchanges[exchange].hasResponseStarted {
                return fail(exchange, .localFailed)
            }
            return hasDrainedOutput(downstream) ? () : writeTimedOut(downstream)
        }
        if awaitsContinue(exchange) { return sendOwnContinue(exchange) }
        if downstreams[downstream].isPaused { return pausedTimedOut(exchange) }
        if exchanges[exchange].isGRPC, exchanges[exchange].upstream >= 0 { return callTimedOut(exchange) }
        let window = now &- exchanges[exchange].windowStart
        let isWindowOver = window >= EventLoop.rateWindow
        let wanted = Int(window / 1_000_000_000) &* snapshot.limits.bodyMinimumRate
        let isIdle = now &- exchanges[exchange].receivedAt >= snapshot.loopTimeouts.bodyIdle
        guard !isIdle, !isWindowOver || exchanges[exchange].windowBytes >= wanted else {
            return fail(exchange, .requestTimeout)
        }
        if isWindowOver { beginRateWindow(exchange) }
        armNextCheck(exchange)
    }

    /// A gRPC call may be silent for its upstream's `timeouts.idle`, which counts bytes in both directions; only its
    /// output must be read.
    mutating func callTimedOut(_ exchange: Int32) {
        let downstream = exchanges[exchange].downstream
        let isTaking =
            hasDrainedOutput(downstream)
            || now &- downstreams[downstream].lastWriteAt < snapshot.loopTimeouts.bodyIdle
        isTaking ? armBody(exchange) : writeTimedOut(downstream)
    }

    mutating func beginRateWindow(_ exchange: Int32) {
        exchanges[exchange].windowStart = now
        exchanges[exchange].windowBytes = 0
    }

    /// A client whose reading is paused need not send.
    ///
    /// A client that reads nothing either may be what its upstream waits for.
    mutating func pausedTimedOut(_ exchange: Int32) {
        let downstream = exchanges[exchange].downstream
        let upstream = exchanges[exchange].upstream
        let isTakingNothing =
            downstreams[downstream].isStream
            ? !hasSentMore(downstream) : now &- downstreams[downstream].lastWriteAt >= snapshot.loopTimeouts.bodyIdle
        if upstream >= 0, upstreams[upstream].isPaused, isTakingNothing { return abandon(downstream) }
        beginRateWindow(exchange)
        armBody(exchange)
    }

    /// Over how long a rate is averaged (`body_min_rate`), in nanoseconds.
    static let rateWindow: Int64 = 30_000_000_000
}
