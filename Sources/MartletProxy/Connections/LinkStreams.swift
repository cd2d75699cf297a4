internal import MartletHTTP2

/// The HTTP/2 side of an upstream's connection: the framing, and which stream is which element.
final class LinkStreams {
    let session: HTTP2Session
    /// By stream number, the places of the streams that are open.
    var places: [Int32: Int32] = [:]
    /// Streams that begin once the connection is there.
    var waiting: [Int32] = []
    /// When frames came last.
    var heardAt: Int64 = 0

    init(_ session: HTTP2Session) { self.session = session }
}
