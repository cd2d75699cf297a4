/// The bounds that are not configured.
enum HTTP2Bounds {
    /// How long resets and noise are counted, in nanoseconds.
    static let period: Int64 = 10_000_000_000
    /// Frames that wait to be sent; more mean that the peer makes us answer but does not read.
    static let outboundFrames = 1000
    /// Decoded bytes of one header block beyond those that are accepted: so much is read to answer 431.
    static let headerExcess = 64 * 1024
    /// Decoded bytes of a refused header block that weigh as much as a reset.
    static let refusedBytes = 4096
    /// Answers of status 1xx to one request.
    static let interims = 32
    /// Above how much unsent data the owner is told when it has gone down again.
    static let drained = 16 * 1024
    /// Bytes produced at once while receiving.
    static let pump = 16 * 1024
    /// Streams that we have reset and that the peer may still be sending on.
    static let rememberedResets = 128
    /// Frames that a peer may owe to what it was sent: acknowledgements of data.
    static let credit = 1024
}

/// Types of frames (RFC 9113 §6).
enum FrameType {
    static let data: UInt8 = 0
    static let headers: UInt8 = 1
    static let priority: UInt8 = 2
    static let reset: UInt8 = 3
    static let settings: UInt8 = 4
    static let pushPromise: UInt8 = 5
    static let ping: UInt8 = 6
    static let goAway: UInt8 = 7
    static let windowUpdate: UInt8 = 8
    static let continuation: UInt8 = 9
}

/// Flags of frames (RFC 9113 §6).
enum FrameFlag {
    static let none: UInt8 = 0
    /// Of SETTINGS and PING.
    static let acknowledgement: UInt8 = 1
    static let endStream: UInt8 = 1
    static let endHeaders: UInt8 = 4
}
