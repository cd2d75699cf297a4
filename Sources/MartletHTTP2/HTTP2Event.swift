package import MartletHTTP

/// An event of a connection, in order.
package enum HTTP2Event: Sendable, Equatable {
    /// A request (server) or the final response (client) was received; `takeHead` returns its text.
    ///
    /// `ends`: neither a body nor `.end` follows.
    case head(stream: Int32, ends: Bool)
    /// Client: an interim response (1xx) was received; `takeHead` returns its text.
    case interim(stream: Int32)
    /// A part of a body: `count` bytes at offset `start` of the last `receive`.
    case data(stream: Int32, start: Int, count: Int)
    /// Trailers were received; `takeHead` returns them as `name: value` lines. `.end` follows.
    case trailers(stream: Int32)
    /// The peer has sent everything.
    case end(stream: Int32)
    /// Unsent data has fallen below 16 KiB: the owner may send more.
    case drained(stream: Int32)
    /// A message was rejected; it has no text.
    ///
    /// Server: the owner responds with `submitHead`; the rest of the request is discarded. Client: the stream is reset,
    /// `.closed` follows.
    case refused(stream: Int32, HeadError)
    /// The stream is closed: complete in both directions, reset by the peer, or reset here because of the peer's error.
    ///
    /// The last event of a stream. Not sent for streams that the owner has reset.
    case closed(stream: Int32, code: HTTP2Code)
    /// The peer opens (server) or accepts (client) no more streams.
    ///
    /// Streams above `lastStream` that the client has opened end as `.closed` with `refusedStream`.
    case goAway(lastStream: Int32, code: HTTP2Code)
}
