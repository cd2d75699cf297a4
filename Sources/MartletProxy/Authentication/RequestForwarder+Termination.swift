internal import MartletDecisions
internal import MartletResponder

/// The end of an exchange whose credential has ended: a tunnel, a call, a body or a response.
extension RequestForwarder {
    /// Ends an exchange whose credential has ended, if it is time.
    static func terminate(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        let progress = CredentialTermination.Progress(
            isTunnel: loop.exchanges.isTunnel(exchange), isGRPC: loop.exchanges[exchange].request.isGRPC,
            isRequestComplete: loop.exchanges[exchange].body.isComplete,
            hasResponseStarted: loop.exchanges[exchange].response.hasStarted,
            started: loop.exchanges[exchange].record.started)
        let action = loop.exchanges[exchange].termination.action(for: progress, at: loop.now)
        let closeReason = loop.exchanges[exchange].termination.closeReason
        if action == .closeTunnel { return endTunnel(exchange, closeReason, &loop) }
        guard action != .wait, let reason = closeReason.reason else { return }
        let failure = Failure.credentialInvalid(reason)
        action == .endCall ? loop.endGRPCCall(exchange, failure) : loop.fail(exchange, failure)
    }
}
