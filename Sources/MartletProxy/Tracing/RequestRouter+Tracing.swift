internal import MartletHTTP

extension RequestRouter {
    /// Notes what the head of a request says that goes no further, for its span.
    @inline(never)
    mutating func noteHead(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        guard context.tracing.isOn else { return }
        unsafe RequestTracing.noteHead(of: exchange, head, bytes, &exchanges, &downstreams, &context)
    }
}
