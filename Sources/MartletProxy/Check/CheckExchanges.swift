internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// What is special about the exchanges of checks: how they are counted and rejected, and their form by gRPC.
enum CheckExchanges {
    /// The response to a check whose request is rejected.
    @inline(never)
    static func rejection(
        of exchange: Handle<Exchange>, _ failure: Failure, _ marks: CheckMarks, _ exchanges: inout Exchanges,
        _ context: inout LoopContext
    ) -> Failure {
        count(exchange, &exchanges, &context)
        return failure.ofCheck(deniesAlike: marks.contains(.deniesAlike))
    }

    /// Counts the exchange as a check of its route; called when it ends, because what waits is found by its route.
    static func count(_ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext) {
        exchanges[exchange].record.routeSlot = context.counters.routes.checkSlot(
            of: exchanges[exchange].record.routeSlot)
    }

    // MARK: Checks by gRPC

    /// Gives an exchange whose turn has come the head that its call describes.
    static func takeHead(
        of stream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections
    ) {
        let exchange = downstreams[stream].exchange
        exchanges[exchange].responder = .none
        downstreams[stream].reader.input.removeAll()
        exchanges[exchange].heldBody.exchange(with: &downstreams[stream].reader.input)
    }

    /// Makes the pending response to a check that of a call.
    @inline(never)
    static func wrapResponse(to exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext)
    {
        let whole = unsafe context.scratch.pending.take(exchange)
        let end = unsafe ResponseHeadWriter.endOfHead(whole)
        let status = exchanges[exchange].response.status
        let rules = context.snapshot.checks
        let message = unsafe CheckCallResponse(
            status: status, head: UnsafeBufferPointer(rebasing: whole[..<end]).span, body: Array(whole[end...])
        ) { line in
            status == 200 ? CallFields.use(ofAllowed: line, rules) : CallFields.use(ofDenied: line)
        }
        let framed = message.framed
        var text = ByteBuffer()
        text.append("HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nDate: ")
        unsafe text.append(context.clock.dateText.bytes)
        text.append("\r\nX-Request-Id: ")
        unsafe text.append(exchanges[exchange].record.texts.requestID)
        text.append("\r\n\r\n")
        text.append(framed)
        context.scratch.pending[exchange].removeAll()
        unsafe context.scratch.pending[exchange].append(text.bytes)
        exchanges[exchange].response.trailers.removeAll()
        exchanges[exchange].response.trailers.append("grpc-status: 0\r\n")
        exchanges[exchange].record.bytesOut = framed.count
    }
}

/// Which fields of a response to a check are of use to the proxy that asks by gRPC.
private enum CallFields {
    /// The identity headers are for the API, a cookie that was replaced and what is left of limits for the client.
    static func use(ofAllowed line: Span<UInt8>, _ rules: CheckRules?) -> CheckCallResponse.Use {
        if rules?.isReserved(line) == true { return .request }
        // A credential of the client that the API does not get.
        if line.count > 0, line[line.count &- 1] == UInt8(ascii: ":") { return .request }
        let isForClient = ["set-cookie:", "ratelimit:", "ratelimit-policy:"].contains { begins(line, $0) }
        return isForClient ? .client : .none
    }

    /// All but what is about the connection of the check.
    static func use(ofDenied line: Span<UInt8>) -> CheckCallResponse.Use {
        ["content-length:", "connection:", "date:"].contains { begins(line, $0) } ? .none : .client
    }

    private static func begins(_ line: Span<UInt8>, _ name: String) -> Bool {
        guard line.count >= name.utf8.count else { return false }
        for (index, byte) in name.utf8.enumerated() where CheckRules.lowered(line[index]) != byte { return false }
        return true
    }
}
