internal import MartletHTTP2

/// What the streams of a downstream HTTP/2 connection share: its session, and the slot of each stream.
///
/// A reference without a reference count. It is valid until the end of the iteration of the loop in which the connection
/// closes.
struct DownstreamHTTP2State {
    let session: HTTP2Session

    init(_ session: HTTP2Session) { self.session = session }

    /// Slots of the open streams, by stream ID.
    var slots: StreamMap {
        @inline(__always) _read { yield session.owner.numbers }
        @inline(__always) nonmutating _modify { yield &session.owner.numbers }
    }

    /// When the header block being received began; `max` for none.
    var headStartedAt: Int64 {
        get { session.owner.times.0 }
        nonmutating set { session.owner.times.0 = newValue }
    }

    /// When the last stream ended, or the connection began; `max` while there are streams; frames that are not requests
    /// do not extend the idle timeout.
    var idleSince: Int64 {
        get { session.owner.times.1 }
        nonmutating set { session.owner.times.1 = newValue }
    }
}
