/// The nine bytes before every frame (RFC 9113 §4.1).
struct FrameHeader {
    let length: Int
    let type: UInt8
    let flags: UInt8
    let stream: Int32

    func has(_ flag: UInt8) -> Bool { flags & flag != 0 }
}

/// Finds the frames in received bytes, so that each is checked before nghttp2 processes it.
///
/// nghttp2 does not report frames that it ignores, though they cost as much as others.
struct FrameScanner {
    enum Step {
        /// The input ends within a frame.
        case more
        /// A frame's header is complete.
        case frame(FrameHeader)
        /// A frame is complete.
        case end
    }

    /// The length of the client connection preface (RFC 9113 §3.4).
    static let magicBytes = 24
    private static let headerBytes = 9
    /// Bytes before the next header.
    private var remaining: Int
    private var header = InlineArray<9, UInt8>(repeating: 0)
    private var headerCount = 0

    /// - Parameter preface: the number of bytes before the first frame.
    init(preface: Int) { remaining = preface }

    /// Continues at `index` and advances it.
    mutating func next(_ bytes: UnsafeBufferPointer<UInt8>, at index: inout Int) -> Step {
        if headerCount == FrameScanner.headerBytes {
            // The header was reported; skip its payload.
            let count = min(remaining, bytes.count &- index)
            remaining &-= count
            index &+= count
            if remaining > 0 { return .more }
            headerCount = 0
            return .end
        }
        let skipped = min(remaining, bytes.count &- index)
        remaining &-= skipped
        index &+= skipped
        while headerCount < FrameScanner.headerBytes, index < bytes.count {
            header[headerCount] = unsafe bytes[index]
            headerCount &+= 1
            index &+= 1
        }
        guard headerCount == FrameScanner.headerBytes else { return .more }
        remaining = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
        let stream = UInt32(header[5]) << 24 | UInt32(header[6]) << 16 | UInt32(header[7]) << 8 | UInt32(header[8])
        return .frame(
            FrameHeader(
                length: remaining, type: header[3], flags: header[4], stream: Int32(bitPattern: stream & 0x7FFF_FFFF)))
    }
}
