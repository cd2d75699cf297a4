internal import MartletDecisions
internal import MartletHTTP
internal import MartletRouter

/// The body and the trailers of a response, and back-pressure between the two connections.
extension Exchange {
    /// Stores a trailer for forwarding, unless it concerns framing, routing, credentials or identity.
    mutating func collectResponseTrailer(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ context: inout LoopContext
    ) {
        guard
            unsafe ResponseState.forwards(
                trailer: field, in: bytes.span, reserved: context.snapshot.routes.reservedNames)
        else { return }
        unsafe response.append(trailer: field, in: bytes, isStream: isStream)
    }

    @inline(__always)
    mutating func resumeDownstream(
        _ downstreams: inout DownstreamConnections, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        guard downstreams[downstream].isPaused, upstreams.unsent(upstream) < Watermark.low else { return }
        downstreams[downstream].isPaused = false
        if !body.isComplete {
            // The time in which the client was not read does not count.
            pace.begin(now: context.now)
            armBody(&downstreams, &context)
        }
        downstreams.markReady(downstream, &context)
    }
}
