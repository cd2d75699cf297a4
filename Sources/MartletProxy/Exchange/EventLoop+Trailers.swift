internal import MartletHTTP

/// Trailers of requests: collected as they are received, and sent after the body.
extension EventLoop {
    /// Stores a request's trailer for forwarding, if it may be forwarded.
    @inline(never)
    mutating func collectTrailer(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>
    ) {
        let announcedOnly = !goesOverStream(exchange)
        unsafe exchanges[exchange].trailers.collect(
            field, bytes, exchanges[exchange].headerRules, snapshot, announcedOnly: announcedOnly)
    }

    /// The same for the trailers of a stream, given as lines.
    mutating func collectTrailers(_ lines: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>) {
        let announcedOnly = !goesOverStream(exchange)
        unsafe exchanges[exchange].trailers.collect(
            lines: lines, exchanges[exchange].headerRules, snapshot, announcedOnly: announcedOnly)
    }

    /// Whether the request is sent in HTTP/2 frames, where trailers need no announcement.
    func goesOverStream(_ exchange: Handle<Exchange>) -> Bool {
        !exchanges[exchange].upstream.isNone && upstreams[exchanges[exchange].upstream].kind == .stream
    }
}
