internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP2

/// Responses on streams of HTTP/2.
extension Exchange {
    /// Ends the response on a stream, with its trailers.
    mutating func finishStream(_ downstreams: inout DownstreamConnections, _ context: inout LoopContext) {
        guard isStream, !response.hasEndedStream else { return }
        response.hasEndedStream = true
        let stream = downstream
        let connection = downstreams[stream].stream.connection
        unsafe downstreams[connection].streams?.session.end(
            downstreams[stream].stream.id, trailers: response.trailers.bytes)
        downstreams.markDirty(connection, &context)
    }
}
