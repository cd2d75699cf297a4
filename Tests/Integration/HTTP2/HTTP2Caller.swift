import MartletCore
import MartletHTTP2
import MartletTesting

/// A client of the gateway that speaks HTTP/2 with prior knowledge, many requests at a time.
final class HTTP2Caller {
    /// What came of one request.
    struct Response: Equatable {
        var head = ""
        var body = ""
        var isWhole = false
        /// The code of a reset.
        var code: UInt32?

        var status: Int? { Int(head.dropFirst(9).prefix(3)) }
    }

    private let socket: RawSocket
    private let session: HTTP2Session
    private(set) var responses: [Int32: Response] = [:]
    private(set) var isOver = false

    init(to gateway: Gateway) throws {
        socket = try RawSocket(connectingTo: gateway.endpoint)
        session = try HTTP2Session.client(HTTP2Options())
    }

    deinit { session.free() }

    /// Sends one request without a body and returns its stream's ID.
    func ask(_ method: String, _ target: String, _ fields: [(String, String)] = []) throws -> Int32 {
        let lines = fields.map { "\($0): \($1)\r\n" }.joined()
        let text = Array("\(method) \(target) HTTP/1.1\r\nHost: a.example\r\n\(lines)\r\n".utf8)
        let stream = unsafe text.withUnsafeBufferPointer {
            unsafe session.submitRequest($0, isSecure: false, ends: true)
        }
        guard let stream else { throw TestFailure("no stream can be opened") }
        responses[stream] = Response()
        try send()
        return stream
    }

    /// Reads until a stream is closed, and returns its response.
    func response(_ stream: Int32) throws -> Response {
        while responses[stream]?.isWhole != true, responses[stream]?.code == nil { try read() }
        return responses[stream] ?? Response()
    }

    /// Whether another request can be sent before a response has come.
    var canAsk: Bool { session.canOpenStream }

    /// Takes what has come.
    func read() throws {
        guard !isOver else { throw TestFailure("the connection is over") }
        let bytes = try socket.receive()
        let goesOn = unsafe bytes.withUnsafeBufferPointer { unsafe session.receive($0, now: 0) }
        while let event = session.nextEvent() { note(event, bytes) }
        isOver = !goesOn || bytes.isEmpty
        try send()
    }

    private func send() throws {
        while session.hasOutput {
            var output = ByteBuffer()
            session.takeOutput(into: &output, upTo: 65536)
            try socket.send(output.array)
        }
    }

    private func note(_ event: HTTP2Event, _ bytes: [UInt8]) {
        switch event {
        case .head(let stream, let ends):
            var text = ByteBuffer()
            session.takeHead(stream, into: &text)
            responses[stream, default: Response()].head = String(decoding: text.array, as: UTF8.self)
            if ends { responses[stream, default: Response()].isWhole = true }
        case .data(let stream, let start, let count):
            responses[stream, default: Response()].body += String(decoding: bytes[start..<start + count], as: UTF8.self)
            session.consume(stream, count)
        case .end(let stream): responses[stream, default: Response()].isWhole = true
        case .closed(let stream, let code) where responses[stream]?.isWhole != true:
            responses[stream, default: Response()].code = code.rawValue
        default: break
        }
    }
}
