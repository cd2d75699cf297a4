package import MartletHTTP

/// What happened on a connection, in order.
package enum HTTP2Event: Sendable, Equatable {
    /// A request (server) or the final answer (client) has come; `takeHead` gives its text.
    ///
    /// `ends`: no body follows, and no `.end`.
    case head(stream: Int32, ends: Bool)
    /// Client: an answer of status 1xx has come; `takeHead` gives its text.
    case interim(stream: Int32)
    /// A part of a body: `count` bytes at `start` of those given to the last `receive`.
    case data(stream: Int32, start: Int, count: Int)
    /// Trailers have come; `takeHead` gives them as `name: value` lines. `.end` follows.
    case trailers(stream: Int32)
    /// The peer has sent everything.
    case end(stream: Int32)
    /// What is unsent has fallen below a quarter of 64 KiB: the owner may go on.
    case drained(stream: Int32)
    /// A message that is refused without a text of it.
    ///
    /// Server: the owner answers with `submitHead`; the rest of the request is thrown away here. Client: the stream is
    /// reset, `.closed` follows.
    case refused(stream: Int32, HeadFailure)
    /// The stream is over: done both ways, reset by the peer, or reset here because of the peer's error.
    ///
    /// Nothing follows for this stream, whose number is forgotten. Not sent for streams that the owner has reset.
    case closed(stream: Int32, code: HTTP2Code)
    /// The peer opens (server) or takes (client) no more streams.
    ///
    /// Streams above `lastStream` that the client has opened end as `.closed` with `refusedStream`.
    case goAway(lastStream: Int32, code: HTTP2Code)
}
