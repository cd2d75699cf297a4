/// The nine bytes before every frame (RFC 9113 §4.1).
struct FrameHeader {
    let length: Int
    let type: UInt8
    let flags: UInt8
    let stream: Int32

    func has(_ flag: UInt8) -> Bool { flags & flag != 0 }
}

/// Finds where frames begin in what arrives, so that each is judged before nghttp2 reads it.
///
/// nghttp2 tells nothing of frames that it ignores, and they cost us as much as others.
struct FrameScanner {
    enum Step {
        /// The bytes end within a frame.
        case more
        /// A frame's header is complete.
        case frame(FrameHeader)
        /// A frame is complete.
        case end
    }

    /// What a client sends before its first frame (RFC 9113 §3.4).
    static let magicBytes = 24
    private static let headerBytes = 9
    /// Bytes up to the next header.
    private var left: Int
    private var header = InlineArray<9, UInt8>(repeating: 0)
    private var have = 0

    /// - Parameter preface: how many bytes come before the first frame.
    init(preface: Int) { left = preface }

    /// Reads on at `index`, and moves it behind what was read.
    mutating func next(_ bytes: UnsafeBufferPointer<UInt8>, at index: inout Int) -> Step {
        if have == FrameScanner.headerBytes {
            // The header was told; now its payload.
            let count = min(left, bytes.count &- index)
            left &-= count
            index &+= count
            if left > 0 { return .more }
            have = 0
            return .end
        }
        let skipped = min(left, bytes.count &- index)
        left &-= skipped
        index &+= skipped
        while have < FrameScanner.headerBytes, index < bytes.count {
            header[have] = unsafe bytes[index]
            have &+= 1
            index &+= 1
        }
        guard have == FrameScanner.headerBytes else { return .more }
        left = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
        let stream = UInt32(header[5]) << 24 | UInt32(header[6]) << 16 | UInt32(header[7]) << 8 | UInt32(header[8])
        return .frame(
            FrameHeader(
                length: left, type: header[3], flags: header[4], stream: Int32(bitPattern: stream & 0x7FFF_FFFF)))
    }
}
