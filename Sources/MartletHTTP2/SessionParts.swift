internal import MartletCore

/// The state of a session that changes with nearly every frame.
///
/// It has memory of its own, without the exclusivity checks of class properties: a sixth of all instructions. Nothing
/// in it calls back into the session.
struct SessionParts: ~Copyable {
    var table = StreamTable()
    var queue = EventQueue()
    var writer: HeadWriter
    var floods: FrameFloodLimiter
    var scanner: FrameScanner
    /// The output buffer: of `produce`, and what `receive` has produced.
    var sink = ByteBuffer()
    /// Scratch memory for outgoing heads.
    var lines = FieldLines()
    var peerStreams = PeerStreamIDs()
    var resets = RecentResets()
    /// Streams that were closed before their peer had finished, with events still queued.
    var aborted: [(stream: Int32, code: HTTP2Code)] = []

    init(_ options: HTTP2Options, isServer: Bool) {
        writer = HeadWriter(
            headerBytes: options.headerBytes, headerFields: options.headerFields,
            maximumTargetBytes: options.maximumTargetBytes)
        floods = FrameFloodLimiter(maximumFloodFrames: options.maximumFloodFrames, maximumResets: options.maximumResets)
        scanner = FrameScanner(preface: isServer ? FrameScanner.magicBytes : 0)
    }
}
