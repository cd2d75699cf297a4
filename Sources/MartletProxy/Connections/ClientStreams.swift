internal import MartletHTTP2

/// The HTTP/2 side of a client's connection: the framing, and which stream is which element.
final class ClientStreams {
    let session: HTTP2Session
    /// By stream number, the places of the streams that are open.
    var places: [Int32: Int32] = [:]
    /// When the header block that is coming in began; `max` for none.
    var headSince = Int64.max

    /// When the last stream ended, or the connection began; `max` while there are streams.
    ///
    /// Frames that are no request do not put off the end of an idle connection.
    var idleSince = Int64.max

    init(_ session: HTTP2Session) { self.session = session }
}
