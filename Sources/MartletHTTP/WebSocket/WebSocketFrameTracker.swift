package import MartletCore

/// Follows the frames that one side of a WebSocket connection sends (RFC 6455 §5), without unmasking or buffering
/// payloads.
///
/// It finds frame boundaries, so that the gateway can insert a frame of its own, and rejects frames whose boundaries
/// are ambiguous, and extension bits when no extension was negotiated. Everything else is left to the endpoints:
/// opcodes, the order of fragments, the text of messages.
///
/// A header that arrives in pieces is buffered until it is complete, so forwarded bytes never end within a header that
/// may turn out to be invalid.
package struct WebSocketFrameTracker: Sendable {
    /// The sender: clients mask every frame, servers none (§5.1).
    package enum Sender: UInt8, Sendable { case client, server }

    /// What to do with the bytes.
    package enum Event: Equatable, Sendable {
        /// Forward these bytes.
        case pass(ByteRange)
        /// Forward a header that arrived in pieces: ``WebSocketFrameTracker/appendHeader(to:)``.
        case passHeader
        /// All bytes were consumed; a partial header at the end is buffered.
        case needMore
        /// A Close frame was forwarded: the rest is ignored (§5.5.1).
        case closed
        case violation(WebSocketViolation)
    }

    private let sender: Sender
    private var held = [14 of UInt8](repeating: 0)
    /// Bytes of an incomplete header.
    private var heldCount = 0
    /// Bytes of the header that was completed last.
    private var wholeCount = 0
    private var payloadLeft: UInt64 = 0
    private var isClose = false
    /// The handshake negotiated extensions, which define the reserved bits.
    package var hasExtensions = false

    package init(from sender: Sender) { self.sender = sender }

    /// Whether the forwarded bytes end at a frame boundary.
    package var isBetweenFrames: Bool { payloadLeft == 0 }

    /// Whether a complete Close frame was forwarded.
    package var hasClosed: Bool { isClose && payloadLeft == 0 }

    /// Inspects the bytes from `offset` on and advances it past those that the event covers.
    ///
    /// Call until it returns `needMore`, `closed` or `violation`. The result does not depend on how the bytes are
    /// split.
    ///
    /// - Parameter stopsBetweenFrames: whether to stop at the end of each frame.
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

    /// The length of the header of ``Event/passHeader``.
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
