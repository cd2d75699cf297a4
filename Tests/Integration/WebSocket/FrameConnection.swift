import MartletTesting

/// A client of HTTP/2 that writes its frames by hand, for what libraries do not do.
final class FrameConnection {
    enum End { case orderly, reset }

    private struct Stream {
        /// Whether the response's status is 200; `nil` before it has come.
        var isOK: Bool?
        var body: [UInt8] = []
        var end: End?
    }

    private let socket: RawSocket
    private var buffer: [UInt8] = []
    private var settings: [UInt8]?
    private var streams: [UInt32: Stream] = [:]

    init(to endpoint: Endpoint) throws {
        socket = try RawSocket(connectingTo: endpoint)
        try socket.send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0, []))
    }

    /// Whether the server's settings say that extended CONNECT may be used (RFC 8441 §3).
    func offersExtendedConnect() throws -> Bool {
        try receive("settings") { settings != nil }
        let all = settings ?? []
        return stride(from: 0, to: all.count - 5, by: 6).contains { Array(all[$0..<$0 + 6]) == [0, 8, 0, 0, 0, 1] }
    }

    /// Asks for a WebSocket.
    func open(
        _ stream: UInt32, _ fields: [(String, String)], path: String = "/chat", protocol name: String = "websocket"
    ) throws {
        let head = [
            (":method", "CONNECT"), (":protocol", name), (":scheme", "http"), (":path", path),
            (":authority", "localhost"), ("sec-websocket-version", "13"),
        ]
        try headers(stream, head + fields, flags: 4)
    }

    func get(_ stream: UInt32, _ path: String, _ fields: [(String, String)]) throws {
        let head = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "localhost")]
        try headers(stream, head + fields, flags: 5)
    }

    func data(_ stream: UInt32, _ bytes: [UInt8], ends: Bool = false) throws {
        try socket.send(frame(0, ends ? 1 : 0, stream, bytes))
    }

    func reset(_ stream: UInt32) throws { try socket.send(frame(3, 0, stream, [0, 0, 0, 8])) }

    /// Whether a stream's response is a 200.
    func status(of stream: UInt32) throws -> Bool {
        try receive("a head on \(stream)") { streams[stream]?.isOK != nil || streams[stream]?.end != nil }
        return streams[stream]?.isOK == true
    }

    /// Takes so many bytes of a stream.
    func body(of stream: UInt32, count: Int) throws -> [UInt8] {
        try receive("\(count) bytes on \(stream)") {
            streams[stream, default: Stream()].body.count >= count || streams[stream]?.end != nil
        }
        let bytes = Array(streams[stream]?.body.prefix(count) ?? [])
        streams[stream]?.body.removeFirst(bytes.count)
        return bytes
    }

    func end(of stream: UInt32) throws -> End? {
        try receive("the end of \(stream)") { streams[stream]?.end != nil }
        return streams[stream]?.end
    }

    private func headers(_ stream: UInt32, _ fields: [(String, String)], flags: UInt8) throws {
        streams[stream] = Stream()
        // Literal fields, neither indexed nor compressed (RFC 7541 §6.2.2).
        var block: [UInt8] = []
        for (name, value) in fields { block += [0] + text(name) + text(value) }
        try socket.send(frame(1, flags, stream, block))
    }

    private func text(_ text: String) -> [UInt8] {
        let count = text.utf8.count
        guard count >= 127 else { return [UInt8(count)] + text.utf8 }
        var bytes: [UInt8] = [127]
        var rest = count - 127
        while rest >= 128 {
            bytes.append(UInt8(rest & 127) | 128)
            rest >>= 7
        }
        return bytes + [UInt8(rest)] + text.utf8
    }

    private func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags]
            + [24, 16, 8, 0].map { UInt8(stream >> UInt32($0) & 255) } + payload
    }

    private func receive(_ what: String, until holds: () -> Bool) throws {
        let deadline = Deadline(in: .seconds(10))
        while !holds() {
            let bytes = try socket.receive(within: .milliseconds(deadline.milliseconds))
            guard !bytes.isEmpty, !deadline.hasPassed else { throw TestFailure("no \(what)") }
            buffer += bytes
            while let (header, payload) = takeFrame() { try take(header, payload) }
        }
    }

    private func takeFrame() -> (header: [UInt8], payload: [UInt8])? {
        guard buffer.count >= 9 else { return nil }
        let count = buffer[..<3].reduce(0) { $0 << 8 | Int($1) }
        guard buffer.count >= 9 + count else { return nil }
        defer { buffer.removeFirst(9 + count) }
        return (Array(buffer[..<9]), Array(buffer[9..<9 + count]))
    }

    private func take(_ header: [UInt8], _ payload: [UInt8]) throws {
        let stream = header[5...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let endsStream = header[4] & 1 != 0
        switch header[3] {
        case 0:
            streams[stream]?.body += payload
            if endsStream, streams[stream]?.end == nil { streams[stream]?.end = .orderly }
        case 1:
            // `:status: 200` is the eighth entry of the static table (RFC 7541, appendix A).
            if streams[stream]?.isOK == nil { streams[stream]?.isOK = payload.first == 0x88 }
            if endsStream { streams[stream]?.end = .orderly }
        case 3: if streams[stream]?.end == nil { streams[stream]?.end = .reset }
        case 4 where !endsStream:
            settings = payload
            try socket.send(frame(4, 1, 0, []))
        default: break
        }
    }
}
