internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletResponder

/// Responses in the gateway's own name: errors, complete ones of handlers, and 100 (Continue).
extension LoopState {
    /// Responds to a request that goes no further.
    mutating func reject(_ exchange: Handle<Exchange>, _ failure: Failure) {
        let marks = exchanges[exchange].request.check
        let failure =
            marks.isEmpty ? failure : CheckExchanges.rejection(of: exchange, failure, marks, &exchanges, &context)
        let downstream = exchanges[exchange].downstream
        let isComplete = exchanges[exchange].body.isComplete && !failure.closes
        exchanges[exchange].response.start(
            status: failure.status, closes: !isComplete || !exchanges[exchange].request.keepsAlive || isDraining)
        exchanges[exchange].record.reason = context.counters.reason(failure)
        context.scratch.pending[exchange].removeAll()
        var body = ByteBuffer()
        let closes = exchanges[exchange].response.closesDownstream && !exchanges[exchange].isStream
        let kind = exchanges[exchange].request.grpc
        if kind != .none, failure.hasStatus(of: kind) {
            unsafe failure.writeStatusHead(
                as: kind, into: &context.scratch.pending[exchange],
                requestID: exchanges[exchange].record.texts.requestID, date: context.clock.dateText, close: closes,
                strictTransportSeconds: downstreams[downstream].origin.rules.strictTransportSeconds)
        } else {
            let page = marks.isEmpty ? exchanges[exchange].errorPage(for: failure, context.snapshot) : nil
            unsafe failure.write(page, to: &body, requestID: exchanges[exchange].record.texts.requestID)
            unsafe failure.writeHead(
                into: &context.scratch.pending[exchange], bodyBytes: body.count,
                requestID: exchanges[exchange].record.texts.requestID, date: context.clock.dateText, close: closes,
                offersBasic: exchanges[exchange].credential.offersBasic,
                strictTransportSeconds: downstreams[downstream].origin.rules.strictTransportSeconds,
                page: page)
        }
        exchanges.completeHead(of: exchange, .uncached, &context)
        if exchanges[exchange].request.method != .head {
            unsafe context.scratch.pending[exchange].append(body.bytes)
            exchanges[exchange].record.bytesOut = body.count
        }
        sendCompleteResponse(exchange)
        guard exchanges[exchange].isAlive else { return }
        exchanges.dropUpstream(of: exchange, &upstreams, &context)
        complete(exchange)
    }

    /// Responds with a failure if no response has started; otherwise the response is truncated.
    mutating func fail(_ exchange: Handle<Exchange>, _ failure: Failure) {
        exchanges.dropUpstream(of: exchange, &upstreams, &context)
        guard exchanges[exchange].response.hasStarted else { return reject(exchange, failure) }
        exchanges[exchange].record.reason = context.counters.reason(failure.reason)
        let downstream = exchanges[exchange].downstream
        finish(exchange)
        if downstreams[downstream].isStream {
            downstreams.resetStream(downstream, .internalError, &context)
            return close(downstream: downstream)
        }
        // A reset, not an orderly close: a response that ends with its connection would look complete.
        Socket.resetOnClose(downstreams[downstream].transport.fd)
        close(downstream: downstream)
    }

    /// Sends the pending bytes, which are a complete response.
    mutating func sendCompleteResponse(_ exchange: Handle<Exchange>) {
        guard exchanges[exchange].isStream else { return sendPending(exchange) }
        if exchanges[exchange].request.check.contains(.isCall) {
            CheckExchanges.wrapResponse(to: exchange, &exchanges, &context)
        }
        var whole = ByteBuffer()
        swap(&whole, &context.scratch.pending[exchange])
        let bytes = unsafe whole.bytes
        let head = unsafe ResponseHeadWriter.endOfHead(bytes)
        unsafe context.scratch.pending[exchange].append(UnsafeBufferPointer(rebasing: bytes[..<head]))
        exchanges.sendStreamHead(exchange, ends: head == bytes.count, &downstreams, &context)
        if head < bytes.count {
            unsafe write(UnsafeBufferPointer(rebasing: bytes[head...]), to: exchanges[exchange].downstream)
        }
        whole.removeAll()
        swap(&whole, &context.scratch.pending[exchange])
        exchanges[exchange].finishStream(&downstreams, &context)
    }

    /// Sends 100 (Continue), so that the client sends the body (RFC 9110 §15.2.1).
    mutating func sendContinue(_ exchange: Handle<Exchange>) {
        context.scratch.pending[exchange].removeAll()
        context.scratch.pending[exchange].append("HTTP/1.1 100 Continue\r\n\r\n")
        exchanges.sendStreamHead(exchange, ends: false, &downstreams, &context)
        sendPending(exchange)
    }

    /// A gRPC call ends with a status, which no caller mistakes for a complete response.
    mutating func endGRPCCall(_ exchange: Handle<Exchange>, _ failure: Failure) {
        exchanges[exchange].record.reason = context.counters.reason(failure.reason)
        exchanges.dropUpstream(of: exchange, &upstreams, &context)
        exchanges[exchange].response.trailers.removeAll()
        failure.writeStatusTrailers(into: &exchanges[exchange].response.trailers)
        exchanges[exchange].finishStream(&downstreams, &context)
        complete(exchange)
    }
}
