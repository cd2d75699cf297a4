internal import MartletDecisions
internal import MartletHTTP

/// Reads upstream connections: responses with their bodies, and how connections fail.
struct ResponseReader: ~Copyable {
    /// The head of the response that is being started.
    var response = ResponseHead(maximumFields: 256)

    /// Adds to the head of an upstream's response what is not its writer's.
    @inline(__always)
    func completeHead(
        _ exchange: Handle<Exchange>, from start: Int, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        if exchanges[exchange].response.rules.isSet || context.snapshot.editsHeads {
            addFields(to: exchange, from: start, &exchanges, &context)
        }
    }

    @inline(never)
    private func addFields(
        to exchange: Handle<Exchange>, from start: Int, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        AccessRecords.note(status: response.status, exchange, &exchanges, &context)
        let hasCookies = response.fields.has(.setCookie)
        guard hasCookies || exchanges[exchange].addsFields else { return }
        exchanges.completeHead(
            of: exchange, from: start, hasCookies ? .upstreamWithCookies : .upstream, &context)
    }
}
