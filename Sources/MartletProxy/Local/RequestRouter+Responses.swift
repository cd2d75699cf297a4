internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder
internal import MartletRouter

/// Routes that have a response of their own: redirects and fixed responses.
extension RequestRouter {
    /// Sends the route's response, now or when the request is complete.
    @inline(never)
    mutating func respond(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        unsafe noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
        let path = unsafe loop.exchanges[exchange].record.texts.path
        let rule = loop.context.snapshot.routes.routes[route].response
        guard
            let response = unsafe rule?.response(
                authority: bytes[head.authority].span, path: path.span, query: bytes[head.query].span)
        else { return loop.reject(exchange, .malformed(.badRedirect)) }
        RequestForwarder.respond(exchange, response, &loop)
    }

    /// Responds to a user who is signed in and may not see what they asked for with a page that says who they are, and
    /// how to leave.
    mutating func deny(
        _ exchange: Handle<Exchange>, _ rejection: Rejection, _ bytes: UnsafeBufferPointer<UInt8>, _ pages: ErrorPages,
        _ loop: inout LoopState
    ) {
        let failure = rejection.failure
        unsafe noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
        unsafe loop.exchanges[exchange].record.texts.add(names: rejection.names)
        loop.exchanges[exchange].record.reason = loop.context.counters.reason(failure)
        unsafe RequestForwarder.beginLocal(exchange, bytes, { await pages.denial(failure, $0) }, &loop)
    }
}

extension RequestForwarder {
    /// Sends the response of a route, now or when the request is complete.
    static func respond(_ exchange: Handle<Exchange>, _ response: LocalResponse, _ loop: inout LoopState) {
        let moment = ResponseMoment(
            loop.exchanges[exchange].body.framing, isComplete: loop.exchanges[exchange].body.isComplete,
            expectsContinue: loop.exchanges[exchange].request.expectsContinue)
        guard moment == .afterBody else { return send(response, of: exchange, &loop) }
        loop.exchanges[exchange].responder = .route
        loop.exchanges[exchange].local.prepared = PreparedResponse(response)
    }

    /// Sends the response that waited for the end of the request.
    static func sendPrepared(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        guard let prepared = loop.exchanges[exchange].local.prepared else { return loop.fail(exchange, .localFailed) }
        send(prepared.response, of: exchange, &loop)
    }
}
