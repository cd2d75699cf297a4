import MartletCore
import MartletCrypto
import MartletTesting
import Testing

/// One frame of a WebSocket (RFC 6455 §5.2).
struct Frame: Equatable, CustomStringConvertible {
    static let text: UInt8 = 0x81
    static let close: UInt8 = 0x88

    var first = Frame.text
    var payload: [UInt8] = []

    /// The status of a Close frame; 1005 where it has none.
    var status: Int { payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : 1005 }
    var words: String { String(decoding: first == Frame.close ? payload.dropFirst(2) : payload[...], as: UTF8.self) }
    var description: String { "\(String(first, radix: 16)): \(payload.count) bytes \(words.prefix(100))" }

    static func text(_ text: String) -> Frame { Frame(payload: Array(text.utf8)) }

    static func close(_ status: UInt16, _ reason: String = "") -> Frame {
        Frame(first: Frame.close, payload: [UInt8(status >> 8), UInt8(status & 0xFF)] + Array(reason.utf8))
    }

    /// As sent on the connection.
    func bytes(masked: Bool) -> [UInt8] {
        let bit: UInt8 = masked ? 0x80 : 0
        var bytes = [first]
        switch payload.count {
        case ..<126: bytes.append(bit | UInt8(payload.count))
        case ..<65_536: bytes += [bit | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default:
            bytes.append(bit | 127)
            for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(payload.count >> shift & 0xFF)) }
        }
        guard masked else { return bytes + payload }
        let mask: [UInt8] = [0xA5, 0x5A, 0x33, 0xCC]
        return bytes + mask + payload.indices.map { payload[$0] ^ mask[$0 & 3] }
    }
}

/// One end of a WebSocket, whose every frame is looked at closely.
final class WebSocketEnd {
    /// The head that opened it: the request at the server's end, the response at the client's.
    let head: HTTPMessage
    let socket: RawSocket
    private let isClient: Bool
    private var buffer: [UInt8]

    init(_ head: HTTPMessage, _ socket: RawSocket, isClient: Bool, _ pending: [UInt8] = []) {
        (self.head, self.socket, self.isClient, buffer) = (head, socket, isClient, pending)
    }

    func send(_ frame: Frame) throws { try socket.send(frame.bytes(masked: isClient), within: .seconds(60)) }
    func send(_ text: String) throws { try send(.text(text)) }

    /// The next frame; `nil` where the connection ends.
    func frame(within limit: Duration = .seconds(10)) throws -> Frame? {
        guard let start = try take(2, limit) else { return nil }
        let isMasked = start[1] & 0x80 != 0
        guard isMasked != isClient else { throw TestFailure("a frame with the wrong mask: \(start)") }
        var count = Int(start[1] & 0x7F)
        if count >= 126 {
            guard let more = try take(count == 126 ? 2 : 8, limit) else { return nil }
            count = more.reduce(0) { $0 << 8 | Int($1) }
        }
        guard let mask = try take(isMasked ? 4 : 0, limit), let payload = try take(count, limit) else { return nil }
        return Frame(first: start[0], payload: isMasked ? payload.indices.map { payload[$0] ^ mask[$0 & 3] } : payload)
    }

    /// Sends a text and expects it back.
    func expectEcho(_ text: String, at location: SourceLocation = #_sourceLocation) throws {
        try send(text)
        #expect(try frame() == .text(text), sourceLocation: location)
    }

    /// Expects a Close frame, echoes it, and expects the end of the connection.
    func expectClose(
        _ status: Int, _ words: String? = nil, within limit: Duration = .seconds(10),
        at location: SourceLocation = #_sourceLocation
    ) throws {
        var last = try frame(within: limit)
        while let frame = last, frame.first != Frame.close { last = try self.frame(within: limit) }
        #expect(last?.status == status, "\(String(describing: last))", sourceLocation: location)
        if let words { #expect(last?.words == words, sourceLocation: location) }
        if let last { try? send(Frame(first: Frame.close, payload: Array(last.payload.prefix(2)))) }
        #expect(socket.isEnded(within: .seconds(3)), sourceLocation: location)
    }

    private func take(_ count: Int, _ limit: Duration) throws -> [UInt8]? {
        while buffer.count < count {
            do {
                let bytes = try socket.receive(atMost: 1 << 18, within: limit)
                if bytes.isEmpty { return nil }
                buffer += bytes
            } catch let failure as TestFailure where failure.description.contains("reset") { return nil }
        }
        defer { buffer.removeFirst(count) }
        return Array(buffer[..<count])
    }
}

/// The fields of a client that wants a WebSocket.
let webSocketFields = [
    ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
]

/// What a server responds to a key (RFC 6455 §4.2.2).
func webSocketAccept(_ key: String) -> String {
    Base64.encode(
        SHA1.digest(Array(key.utf8) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8), padding: .required)
}

extension Exchange {
    /// Accepts the WebSocket that the request asks for.
    func acceptWebSocket(_ more: String = "", early: [UInt8] = []) throws -> WebSocketEnd {
        let accept = webSocketAccept(request["Sec-WebSocket-Key"] ?? "")
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(accept)\r\n\(more)\r\n"
        try send(Array(head.utf8) + early)
        closes = true
        return WebSocketEnd(request, socket, isClient: false, pending)
    }
}

extension Gateway {
    /// Opens a WebSocket.
    func webSocket(_ target: String = "/chat", _ more: [(String, String)] = []) throws -> WebSocketEnd {
        let client = try connect()
        try client.send("GET", target, webSocketFields + more)
        let response = try client.response()
        guard response.status == 101 else { throw TestFailure("no WebSocket: \(response)") }
        return WebSocketEnd(response, client.socket, isClient: true, client.reader.pending)
    }
}

/// What upstreams of these tests do: they keep what ended them.
struct EchoScript: Sendable {
    /// The frames that were no text, and `nil` for an end without a Close frame.
    let ends = Box<[Frame?]>([])

    /// Sends every text back until something else comes.
    var script: ScriptedUpstream.Script {
        { [ends] exchange in
            guard exchange.request["Upgrade"] != nil else { return try exchange.respond(200, body: "ok") }
            let end = try exchange.acceptWebSocket()
            while let frame = try end.frame(within: .seconds(60)) {
                guard frame.first != Frame.close else {
                    ends.withLock { $0.append(frame) }
                    return try end.send(Frame(first: Frame.close, payload: Array(frame.payload.prefix(2))))
                }
                try end.send(frame)
            }
            ends.withLock { $0.append(nil) }
        }
    }
}
