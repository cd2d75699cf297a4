/// Limits that are not configurable.
enum HTTP2Limits {
    /// The period of the flood counters, in nanoseconds.
    static let period: Int64 = 10_000_000_000
    /// Frames queued for sending; with more the peer provokes responses but does not read.
    static let outboundFrames = 1000
    /// Fields and bytes of an outgoing head that is read with a parser; others take the slow path.
    static let fastFields = 64
    static let fastHeadBytes = 64 * 1024
    /// Bytes of texts up to which their memory goes back to the pool.
    static let pooledTextBytes = 256 * 1024
    /// Bytes of a header block that are decoded beyond the accepted ones, so that the client can get a 431.
    static let headerExcessBytes = 64 * 1024
    /// Decoded bytes of a rejected header block that count as one reset.
    static let rejectedBytesPerReset = 4096
    /// Bytes of all interim responses (1xx) to one request, as text.
    static let interimBytes = 64 * 1024
    /// The low-water mark of unsent data at which the owner gets `.drained`, in bytes.
    static let drained = 16 * 1024
    /// The output in bytes that is produced while receiving.
    static let pump = 16 * 1024
    /// Streams that were reset here and on which the peer may still be sending.
    static let recentResets = 128
    /// The maximum credit of frames for acknowledging what the peer was sent.
    static let credit = 1024
}

/// Types of frames (RFC 9113 §6).
enum FrameType {
    static let data: UInt8 = 0
    static let headers: UInt8 = 1
    static let priority: UInt8 = 2
    static let reset: UInt8 = 3
    static let settings: UInt8 = 4
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
