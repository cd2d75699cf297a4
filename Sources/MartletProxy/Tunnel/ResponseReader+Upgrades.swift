internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// The upstream's 101 (Switching Protocols), which alone turns the two connections into a tunnel (RFC 9110 §7.8).
extension ResponseReader {
    /// The upstream has switched: from now on bytes pass in both directions.
    mutating func openTunnel(
        _ bytes: UnsafeBufferPointer<UInt8>, _ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState
    ) {
        let exchange = loop.upstreams[upstream].exchange
        let tunnel = loop.exchanges[exchange].tunnel
        guard loop.exchanges[exchange].forwarding.head.isSent,
            unsafe loop.exchanges.tunnels[tunnel].offer.matches(response, bytes.span)
        else {
            return loop.rejectResponse(upstream, "upstream.unexpected_upgrade")
        }
        loop.upstreams.directory.succeeded(loop.upstreams[upstream].endpoint, now: loop.now)
        unsafe writeSwitch(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
        loop.exchanges.switchProtocols(of: exchange, upstream, &loop.downstreams, &loop.upstreams, &loop.context)
        loop.exchanges.tunnels[tunnel].open(
            now: loop.now, hasExtensions: response.fields.has(.secWebSocketExtensions),
            upstreamIdleTimeout: loop.exchanges[exchange].forwarding.idleTimeout)
        loop.context.counters.tunnels.opened &+= 1
        loop.context.counters.tunnels.open &+= 1
        loop.downstreams.markReady(loop.exchanges[exchange].downstream, &loop.context)
    }

    /// Writes the head of the client's 101.
    mutating func writeSwitch(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        let start = context.scratch.pending[exchange].count
        unsafe exchanges[exchange].headWriter(&downstreams).writeSwitch(
            response, bytes, to: exchanges.tunnels[exchanges[exchange].tunnel].offer.name.bytes,
            requestID: exchanges[exchange].record.texts.requestID, into: &context.scratch.pending[exchange])
        completeHead(exchange, from: start, &exchanges, &context)
        exchanges.sendStreamHead(exchange, ends: false, &downstreams, &context)
    }
}
