package import MartletCore

/// Follows the frames that one side of a WebSocket connection sends (RFC 6455 §5), without unmasking or keeping any payload.
///
/// It tells where frames begin and end, so that a frame of the gateway's own can be put between them, and refuses what
/// would let two readers disagree about that, and extension bits where no extension was agreed on. What only the ends can
/// judge passes: opcodes, the order of fragments, the text of messages.
///
/// A header that arrives in pieces is held back until it is whole: what has passed ends within a payload or between two
/// frames, never within a header that may turn out to be wrong.
package struct WebSocketFrameTracker: Sendable {
    /// Who sends: clients mask every frame, servers none (§5.1).
    package enum Sender: UInt8, Sendable { case client, server }

    /// What becomes of bytes.
    package enum Event: Equatable, Sendable {
        /// These may go on.
        case pass(ByteRange)
        /// A header that came in pieces may go on: ``WebSocketFrameTracker/appendHeader(to:)``.
        case passHeader
        /// Everything was used; a part of a header at its end is held.
        case needMore
        /// A Close frame has passed: nothing behind it counts (§5.5.1).
        case closed
        case violation(WebSocketViolation)
    }

    private let sender: Sender
    private var held = [14 of UInt8](repeating: 0)
    /// Bytes of a header that is not whole yet.
    private var heldCount = 0
    /// Bytes of the header that was made whole last.
    private var wholeCount = 0
    private var payloadLeft: UInt64 = 0
    private var isClose = false
    /// The handshake has agreed on extensions, which say what their bits mean.
    package var hasExtensions = false

    package init(from sender: Sender) { self.sender = sender }

    /// Whether what has passed so far ends with a whole frame.
    package var isBetweenFrames: Bool { payloadLeft == 0 }

    /// Whether a whole Close frame has passed.
    package var hasClosed: Bool { isClose && payloadLeft == 0 }

    /// Looks at the bytes from `offset` on and moves it behind those that the event is about.
    ///
    /// To be called until it says `needMore`, `closed` or `violation`; how the bytes are split makes no difference to
    /// what passes and what is refused.
    ///
    /// - Parameter stopsBetweenFrames: bytes pass up to the end of a frame and no further.
    package mutating func next(
        _ bytes: Span<UInt8>, from offset: inout Int, stopsBetweenFrames: Bool = false
    ) -> Event {
        if heldCount > 0 { return completeHeader(bytes, from: &offset) }
        let start = offset
        passPayload(bytes, from: &offset)
        while offset < bytes.count, !hasClosed, !stopsBetweenFrames || offset == start {
            switch WebSocketHeader.read(
                bytes.extracting(offset..<bytes.count), from: sender, hasExtensions: hasExtensions)
            {
            case .complete(let header):
                begin(header)
                offset &+= header.count
                passPayload(bytes, from: &offset)
            case .incomplete: return offset > start ? .pass(ByteRange(from: start, to: offset)) : hold(bytes, &offset)
            case .violation(let violation):
                return offset > start ? .pass(ByteRange(from: start, to: offset)) : .violation(violation)
            }
        }
        if offset > start { return .pass(ByteRange(from: start, to: offset)) }
        return offset < bytes.count ? .closed : .needMore
    }

    /// How long the header is that ``Event/passHeader`` is about.
    package var headerBytes: Int { wholeCount }

    /// Writes that header.
    package func appendHeader(to out: inout ByteBuffer) {
        for index in 0..<wholeCount { out.append(held[index]) }
    }

    private mutating func begin(_ header: WebSocketHeader) {
        payloadLeft = header.payload
        isClose = header.isClose
    }

    private mutating func passPayload(_ bytes: Span<UInt8>, from offset: inout Int) {
        let count = Int(min(payloadLeft, UInt64(max(bytes.count &- offset, 0))))
        payloadLeft &-= UInt64(count)
        offset &+= count
    }

    private mutating func hold(_ bytes: Span<UInt8>, _ offset: inout Int) -> Event {
        while offset < bytes.count, heldCount < WebSocketHeader.longest {
            held[heldCount] = bytes[offset]
            heldCount &+= 1
            offset &+= 1
        }
        return .needMore
    }

    private mutating func completeHeader(_ bytes: Span<UInt8>, from offset: inout Int) -> Event {
        while offset < bytes.count, heldCount < WebSocketHeader.longest {
            held[heldCount] = bytes[offset]
            heldCount &+= 1
            offset &+= 1
            switch WebSocketHeader.read(
                held.span.extracting(first: heldCount), from: sender, hasExtensions: hasExtensions)
            {
            case .incomplete: continue
            case .complete(let header):
                begin(header)
                wholeCount = heldCount
                heldCount = 0
                return .passHeader
            case .violation(let violation): return .violation(violation)
            }
        }
        return .needMore
    }
}
