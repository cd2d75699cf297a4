/// The parts of a frame header (RFC 6455 §5.2) that the gateway uses.
struct WebSocketHeader: Equatable {
    /// The result of parsing a header.
    enum Outcome: Equatable {
        case incomplete
        case complete(WebSocketHeader)
        case violation(WebSocketViolation)
    }

    /// Two bytes, eight of length, four of mask.
    static let longest = 14
    private static let closeOpcode: UInt8 = 0x8

    /// The length of the header in bytes.
    let count: Int
    let payload: UInt64
    let isClose: Bool

    /// Parses the header at the start of `bytes`; fails on the first invalid byte.
    static func read(
        _ bytes: Span<UInt8>, from sender: WebSocketFrameTracker.Sender, hasExtensions: Bool
    ) -> Outcome {
        guard bytes.count >= 2 else { return .incomplete }
        let (first, second) = (bytes[0], bytes[1])
        guard hasExtensions || first & 0x70 == 0 else { return .violation(.reservedBits) }
        let isMasked = second & 0x80 != 0
        guard isMasked == (sender == .client) else {
            return .violation(isMasked ? .maskedServerFrame : .unmaskedClientFrame)
        }
        let opcode = first & 0x0F
        let short = second & 0x7F
        if opcode & 0x8 != 0 {
            guard first & 0x80 != 0 else { return .violation(.fragmentedControlFrame) }
            guard short < 126 else { return .violation(.longControlFrame) }
            guard opcode != closeOpcode || short != 1 else { return .violation(.halfStatusCode) }
        }
        let extra = short < 126 ? 0 : short == 126 ? 2 : 8
        let count = 2 &+ extra &+ (isMasked ? 4 : 0)
        guard bytes.count >= 2 &+ extra else { return .incomplete }
        var payload = UInt64(short)
        if extra > 0 {
            payload = 0
            for index in 2..<2 &+ extra { payload = payload &<< 8 | UInt64(bytes[index]) }
            let least: UInt64 = extra == 2 ? 126 : 0x1_0000
            guard payload >= least, payload >> 63 == 0 else { return .violation(.badLength) }
        }
        guard bytes.count >= count else { return .incomplete }
        return .complete(WebSocketHeader(count: count, payload: payload, isClose: opcode == closeOpcode))
    }
}
