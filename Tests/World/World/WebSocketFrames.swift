import WorldMachine

/// Frames of RFC 6455, written in any legal way.
struct WebSocketWriter {
    let isClient: Bool
    var random: SeededRandom

    static let (continuation, text, binary, close, ping, pong) = (0, 1, 2, 8, 9, 10)
    static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    mutating func frame(_ kind: Int, _ payload: [UInt8], isLast: Bool = true) -> [UInt8] {
        var bytes = [UInt8(kind | (isLast ? 0x80 : 0))]
        let mask: UInt8 = isClient ? 0x80 : 0
        switch payload.count {
        case ..<126: bytes.append(mask | UInt8(payload.count))
        case ..<65_536: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
        default: bytes += [mask | 127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
        }
        guard isClient else { return bytes + payload }
        let key = (0..<4).map { _ in UInt8(random.below(256)) }
        return bytes + key + payload.enumerated().map { $1 ^ key[$0 & 3] }
    }

    /// A message, perhaps in several frames with others between them.
    mutating func message(_ payload: [UInt8]) -> [UInt8] {
        var rest = payload[...]
        var (kind, bytes) = (Self.binary, [UInt8]())
        while random.chance(250) {
            let part = rest.prefix(random.below(rest.count + 1))
            rest = rest.dropFirst(part.count)
            bytes += frame(kind, Array(part), isLast: false)
            kind = Self.continuation
            if random.chance(200) { bytes += frame(Self.ping, [1, 2, 3]) }
        }
        return bytes + frame(kind, Array(rest))
    }

    mutating func closing(_ code: Int) -> [UInt8] { frame(Self.close, [UInt8(code >> 8), UInt8(code & 0xff)]) }

    /// What no receiver may accept.
    mutating func violation() -> [UInt8] {
        switch random.below(3) {
        case 0: [0x82, 0x03, 1, 2, 3]
        case 1: [0xc2, 0x83, 0, 0, 0, 0, 1, 2, 3]
        default: [0x89, 0xfe, 0, 200, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 200)
        }
    }
}

/// Reads frames as a strict receiver would.
struct WebSocketReader {
    enum Piece {
        case data([UInt8])
        case control(Int, [UInt8])
        case invalid(String)
    }

    /// Whether frames must have a mask.
    let isServer: Bool
    private var bytes: [UInt8] = []
    private var isInMessage = false
    private(set) var isClosed = false

    init(isServer: Bool) { self.isServer = isServer }

    mutating func read(_ more: [UInt8]) -> [Piece] {
        bytes += more
        var pieces: [Piece] = []
        while let piece = next() { pieces.append(piece) }
        return pieces
    }

    private mutating func next() -> Piece? {
        guard bytes.count >= 2 else { return nil }
        if isClosed { return fail("a frame after Close") }
        let (kind, isLast, isMasked) = (Int(bytes[0] & 0xf), bytes[0] & 0x80 != 0, bytes[1] & 0x80 != 0)
        guard bytes[0] & 0x70 == 0 else { return fail("reserved bits") }
        guard isMasked == isServer else { return fail("a mask that is wrong or absent") }
        var (length, position) = (Int(bytes[1] & 0x7f), 2)
        if length >= 126 {
            let width = length == 126 ? 2 : 8
            guard bytes.count >= 2 + width else { return nil }
            length = bytes[2..<2 + width].reduce(0) { $0 << 8 | Int($1) }
            position += width
        }
        let start = position + (isMasked ? 4 : 0)
        guard bytes.count >= start + length else { return nil }
        var payload = Array(bytes[start..<start + length])
        if isMasked { for index in payload.indices { payload[index] ^= bytes[position + index & 3] } }
        bytes.removeFirst(start + length)
        if kind >= 8 {
            guard isLast, length < 126 else { return fail("a control frame that is long or fragmented") }
            if kind == WebSocketWriter.close { isClosed = true }
            return .control(kind, payload)
        }
        guard (kind == 0) == isInMessage, kind <= 2 else { return fail("kind \(kind) in or out of a message") }
        isInMessage = !isLast
        return .data(payload)
    }

    private mutating func fail(_ reason: String) -> Piece {
        bytes = []
        return .invalid(reason)
    }
}
