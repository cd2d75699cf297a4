/// What a deadline of a downstream connection means while a request is in progress: it follows from the state of the
/// exchange when the deadline has passed.
package struct RequestDeadline {
    /// What has to be done.
    package enum Action {
        /// Nothing: a tunnel has its own deadlines.
        case ignore
        /// The probe of a half-closed client is due.
        case probePeer
        /// A local handler did not respond in time.
        case failLocal
        /// The client must have read some of the response.
        case checkOutput
        /// The upstream sent no 100 (Continue) in time: the gateway sends it.
        case sendContinue
        /// The client need not send; see ``isStuck(isUpstreamPaused:isReading:)``.
        case checkPause
        /// A gRPC call may be silent as long as its output is read: its upstream's `timeouts.idle` counts bytes in both
        /// directions.
        case checkCall
        /// More of the body must have arrived.
        case checkProgress
    }

    package var isTunnel = false
    package var isProbePending = false
    /// The whole request was received.
    package var isComplete = false
    /// A handler in this process responds.
    package var isLocal = false
    package var hasResponseStarted = false
    package var awaitsContinue = false
    /// The client is not read because its upstream is slower.
    package var isPaused = false
    /// A gRPC call that has an upstream connection.
    package var isCall = false

    package init(
        isTunnel: Bool = false, isProbePending: Bool = false, isComplete: Bool = false, isLocal: Bool = false,
        hasResponseStarted: Bool = false, awaitsContinue: Bool = false, isPaused: Bool = false, isCall: Bool = false
    ) {
        self.isTunnel = isTunnel
        self.isProbePending = isProbePending
        self.isComplete = isComplete
        self.isLocal = isLocal
        self.hasResponseStarted = hasResponseStarted
        self.awaitsContinue = awaitsContinue
        self.isPaused = isPaused
        self.isCall = isCall
    }

    /// The action for a deadline that has passed.
    package var action: Action {
        if isTunnel { return .ignore }
        if isProbePending { return .probePeer }
        if isComplete { return isLocal && !hasResponseStarted ? .failLocal : .checkOutput }
        if awaitsContinue { return .sendContinue }
        if isPaused { return .checkPause }
        return isCall ? .checkCall : .checkProgress
    }

    /// Whether a paused exchange cannot continue: the upstream waits for a client that reads nothing, and the client
    /// for the upstream.
    package static func isStuck(isUpstreamPaused: Bool, isReading: Bool) -> Bool { isUpstreamPaused && !isReading }

    /// Whether a client reads: its socket accepted bytes within the timeout.
    package static func isReading(lastWriteAt: Int64, now: Int64, timeout: Int64) -> Bool {
        now &- lastWriteAt < timeout
    }
}
