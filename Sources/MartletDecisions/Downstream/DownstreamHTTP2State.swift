package import MartletHTTP2

/// What the streams of a downstream HTTP/2 connection share: its session, and the slot of each stream.
///
/// A reference without a reference count. It is valid until the end of the iteration of the loop in which the connection
/// closes.
@safe package struct DownstreamHTTP2State {
    package let session: HTTP2Session
    private let owner: UnsafeMutablePointer<OwnerData>

    package init(_ session: HTTP2Session) {
        self.session = session
        unsafe owner = session.owner
    }

    /// Slots of the open streams, by stream ID.
    package var slots: StreamMap {
        @inline(__always) _read { yield unsafe owner.pointee.numbers }
        @inline(__always) nonmutating _modify { yield unsafe &owner.pointee.numbers }
    }

    /// When the header block being received began; `max` for none.
    package var headStartedAt: Int64 {
        get { unsafe owner.pointee.times.0 }
        nonmutating set { unsafe owner.pointee.times.0 = newValue }
    }

    /// When the last stream ended, or the connection began; `max` while there are streams; frames that are not requests
    /// do not extend the idle timeout.
    package var idleSince: Int64 {
        get { unsafe owner.pointee.times.1 }
        nonmutating set { unsafe owner.pointee.times.1 = newValue }
    }
}
