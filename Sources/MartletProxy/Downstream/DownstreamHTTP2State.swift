internal import MartletHTTP2

/// The HTTP/2 side of a downstream connection: the framing, and the slot of each stream.
final class DownstreamHTTP2State {
    let session: HTTP2Session
    /// Slots of the open streams, by stream ID.
    var slots: [Int32: Int32] = [:]
    /// When the header block being received began; `max` for none.
    var headStartedAt = Int64.max

    /// When the last stream ended, or the connection began; `max` while there are streams; frames that are not requests
    /// do not extend the idle timeout.
    var idleSince = Int64.max

    init(_ session: HTTP2Session) { self.session = session }
}
