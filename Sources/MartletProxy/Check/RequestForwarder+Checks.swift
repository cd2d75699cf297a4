internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// Checks by gRPC, whose message describes the request.
extension RequestForwarder {
    /// Makes the message of a call the head of a check, which the exchange continues with in its next turn.
    static func describeCheck(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        guard let rules = loop.context.snapshot.checks else { return loop.fail(exchange, .noRoute) }
        let body = loop.exchanges[exchange].heldBody.array
        var head = ByteBuffer()
        do throws(CheckError) {
            let call = try CheckCall(body.span)
            // Until here the response has a status of gRPC, from here on a message.
            loop.exchanges[exchange].request.isGRPC = false
            var marks = rules.marks.union(.isCall)
            if call.deniesAlike { marks.insert(.deniesAlike) }
            if call.redirectsBrowsers { marks.insert(.redirectsBrowsers) }
            loop.exchanges[exchange].request.check = marks
            try call.writeHead(at: rules.endpoint, body.span, into: &head)
        } catch {
            return loop.reject(exchange, .check(error))
        }
        loop.exchanges[exchange].heldBody.exchange(with: &head)
        loop.exchanges.suspend(exchange, for: .turn, until: .max, &loop.downstreams, &loop.context)
        loop.downstreams.markReady(loop.exchanges[exchange].downstream, &loop.context)
    }
}
