internal import MartletHTTP

/// Reads upstream connections: responses with their bodies, and how connections fail.
struct ResponseReader: ~Copyable {
    /// The head of the response that is being started.
    var response = ResponseHead(maximumFields: 256)

    /// Ends the head of an upstream's response.
    @inline(__always)
    func endHead(
        _ exchange: Handle<Exchange>, from start: Int, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        if context.snapshot.editsHeads { SelectedLines.note(status: response.status, exchange, &exchanges, &context) }
        exchanges.endHead(
            of: exchange, from: start, response.fields.has(.setCookie) ? .upstreamWithCookies : .upstream, &context)
    }
}
