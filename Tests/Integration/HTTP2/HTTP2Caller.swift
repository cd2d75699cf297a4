import MartletCore
import MartletHTTP2
import MartletTesting

/// A client of the gateway that speaks HTTP/2 with prior knowledge, many requests at a time.
final class HTTP2Caller {
    /// What came of one request.
    struct Answer: Equatable {
        var head = ""
        var body = ""
        var isWhole = false
        /// The code of a reset.
        var code: UInt32?

        var status: Int? { Int(head.dropFirst(9).prefix(3)) }
    }

    private let socket: RawSocket
    private let session: HTTP2Session
    private(set) var answers: [Int32: Answer] = [:]
    private(set) var isOver = false

    init(to gateway: Gateway) throws {
        socket = try RawSocket(connectingTo: gateway.endpoint)
        session = try HTTP2Session.client(HTTP2Options())
    }

    deinit { session.free() }

    /// Sends one request without a body and answers its stream's number.
    func ask(_ method: String, _ target: String, _ fields: [(String, String)] = []) throws -> Int32 {
        let lines = fields.map { "\($0): \($1)\r\n" }.joined()
        let text = Array("\(method) \(target) HTTP/1.1\r\nHost: a.example\r\n\(lines)\r\n".utf8)
        let stream = unsafe text.withUnsafeBufferPointer {
            unsafe session.submitRequest($0, isSecure: false, ends: true)
        }
        guard let stream else { throw TestFailure("no stream can be opened") }
        answers[stream] = Answer()
        try send()
        return stream
    }

    /// Reads until a stream is over, and answers what came of it.
    func answer(_ stream: Int32) throws -> Answer {
        while answers[stream]?.isWhole != true, answers[stream]?.code == nil { try read() }
        return answers[stream] ?? Answer()
    }

    /// Whether another request can be sent before an answer has come.
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
            answers[stream, default: Answer()].head = String(decoding: text.array, as: UTF8.self)
            if ends { answers[stream, default: Answer()].isWhole = true }
        case .data(let stream, let start, let count):
            answers[stream, default: Answer()].body += String(decoding: bytes[start..<start + count], as: UTF8.self)
            session.consume(stream, count)
        case .end(let stream): answers[stream, default: Answer()].isWhole = true
        case .closed(let stream, let code) where answers[stream]?.isWhole != true:
            answers[stream, default: Answer()].code = code.rawValue
        default: break
        }
    }
}
