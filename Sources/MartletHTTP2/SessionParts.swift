internal import MartletCore

/// The parts of a session that change with nearly every frame.
///
/// They stand in memory of their own, which the session reaches without the checks that a class makes of each access:
/// a sixth of all instructions. None of them calls anything that comes back to the session.
struct SessionParts: ~Copyable {
    var table = StreamTable()
    var queue = EventQueue()
    var writer: HeadWriter
    var noise: NoiseMeter
    var scanner: FrameScanner
    /// Where frames are put while they are produced, and what `receive` has produced.
    var sink = ByteBuffer()
    /// For outgoing heads.
    var lines = FieldLines()
    var peerStreams = StreamNumbers()
    var resets = ResetMemory()
    /// Streams that were closed before their peer was done, and of which events wait.
    var broken: [(stream: Int32, code: HTTP2Code)] = []

    init(_ options: HTTP2Options, isServer: Bool) {
        writer = HeadWriter(
            headerBytes: options.headerBytes, headerFields: options.headerFields,
            maximumTargetBytes: options.maximumTargetBytes)
        noise = NoiseMeter(maximumNoise: options.maximumNoise, maximumResets: options.maximumResets)
        scanner = FrameScanner(preface: isServer ? FrameScanner.magicBytes : 0)
    }
}
