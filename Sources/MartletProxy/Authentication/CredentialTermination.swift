internal import MartletDecisions

/// How an exchange ends whose credential has ended before it.
struct CredentialTermination {
    enum Action: Equatable {
        /// It is left alone for now: a complete request that waits for its response, or a young exchange.
        case wait
        case closeTunnel
        /// A gRPC call ends with a status.
        case endCall
        case fail
    }

    /// An exchange, as far as its end depends on it.
    struct Progress {
        var isTunnel = false
        var isGRPC = false
        var isRequestComplete = true
        var hasResponseStarted = false
        var started: Int64 = 0
    }

    /// When the exchange is terminated.
    private(set) var deadline = Int64.max
    private(set) var isRevoked = false

    /// The credential has expired, or was revoked.
    /// - Parameter grace: how long the exchange may outlive it, in nanoseconds.
    mutating func credentialEnded(isRevoked: Bool, grace: Int64, at now: Int64) {
        self.isRevoked = isRevoked
        deadline = now &+ grace
    }

    /// Why a tunnel is closed.
    var closeReason: CloseReason { isRevoked ? .revoked : .expired }

    /// What happens to the exchange now.
    mutating func action(for exchange: Progress, at now: Int64) -> Action {
        guard deadline <= now else { return .wait }
        if exchange.isTunnel {
            // Closing it has deadlines of its own.
            deadline = .max
            return .closeTunnel
        }
        // A complete request that waits for its response is left alone; a response is cut off if it is a long one.
        let isUnderWay = exchange.hasResponseStarted || !exchange.isRequestComplete
        guard isUnderWay, CredentialWatch.isLong(since: exchange.started, at: now) else { return .wait }
        return exchange.isGRPC && exchange.hasResponseStarted ? .endCall : .fail
    }
}
