internal import MartletHTTP2

/// The HTTP/2 side of an upstream connection: the framing, and the slot of each stream.
final class UpstreamHTTP2State {
    let session: HTTP2Session
    /// Slots of the open streams, by stream ID.
    var slots: StreamMap {
        @inline(__always) _read { yield unsafe session.owner.pointee.numbers }
        @inline(__always) _modify { yield unsafe &session.owner.pointee.numbers }
    }
    /// Streams that wait for the connection to be established.
    var waiting: [Handle<UpstreamConnection>] = []
    /// When frames were last received.
    var lastFrameAt: Int64 = 0

    init(_ session: HTTP2Session) { self.session = session }

    deinit { session.free() }
}
