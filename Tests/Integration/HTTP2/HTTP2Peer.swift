import MartletCore
import MartletHTTP2
import MartletTesting

/// One side of a connection of HTTP/2 in clear text, on a blocking socket.
final class HTTP2Peer {
    /// What came on one stream.
    struct Stream {
        /// Heads as HTTP/1 text.
        var head = ""
        var body: [UInt8] = []
        /// `name: value` lines.
        var trailers = ""
        /// The peer has sent everything.
        var hasEnded = false
        /// How it was reset; `nil` where it was not.
        var reset: HTTP2Code?

        /// The value of a field, of the head or the trailers.
        func value(of name: String) -> String? {
            (head + trailers).split(separator: "\r\n").first { $0.lowercased().hasPrefix("\(name): ") }
                .map { String($0.dropFirst(name.count + 2)) }
        }

        /// The messages of gRPC that are whole.
        var messages: [[UInt8]] {
            var rest = body[...]
            var found: [[UInt8]] = []
            while rest.count >= 5 {
                let count = rest.dropFirst().prefix(4).reduce(0) { $0 << 8 | Int($1) }
                guard rest.count >= 5 + count else { break }
                found.append(Array(rest.dropFirst(5).prefix(count)))
                rest = rest.dropFirst(5 + count)
            }
            return found
        }
    }

    let socket: RawSocket
    private let session: HTTP2Session
    private(set) var streams: [Int32: Stream] = [:]

    deinit { session.free() }

    /// The client's side of a connection of its own.
    init(to endpoint: Endpoint) throws {
        socket = try RawSocket(connectingTo: endpoint)
        session = try HTTP2Session.client(HTTP2Options())
        try flush()
    }

    /// The server's side of a connection that was accepted.
    init(serving socket: RawSocket) throws {
        self.socket = socket
        session = try HTTP2Session.server(HTTP2Options())
        try flush()
    }

    /// Sends what there is to send.
    func flush() throws {
        var buffer = ByteBuffer()
        session.takeOutput(into: &buffer, upTo: 1 << 24)
        if !buffer.isEmpty { try socket.send(buffer.array) }
        takeEvents(of: [])
    }

    /// Opens a stream with a head given as lines.
    func request(_ lines: [String], ends: Bool) throws -> Int32 {
        let text = lines.joined(separator: "\r\n") + "\r\n\r\n"
        let stream = unsafe Array(text.utf8).withUnsafeBufferPointer {
            unsafe session.submitRequest($0, isSecure: false, ends: ends, acceptsTrailers: true)
        }
        guard let stream else { throw TestFailure("no stream for \(lines)") }
        streams[stream] = Stream()
        try flush()
        return stream
    }

    /// Responds on a stream with a head given as lines.
    func respond(_ stream: Int32, _ lines: [String], ends: Bool = false) throws {
        let text = lines.joined(separator: "\r\n") + "\r\n\r\n"
        unsafe Array(text.utf8).withUnsafeBufferPointer { unsafe session.submitHead(stream, $0, ends: ends) }
        try flush()
    }

    func send(_ stream: Int32, _ bytes: [UInt8]) throws {
        unsafe bytes.withUnsafeBufferPointer { unsafe session.send(stream, $0) }
        try flush()
    }

    func end(_ stream: Int32, trailers: String = "") throws {
        unsafe Array(trailers.utf8).withUnsafeBufferPointer { unsafe session.end(stream, trailers: $0) }
        try flush()
    }

    func reset(_ stream: Int32, _ code: HTTP2Code) throws {
        session.reset(stream, code)
        try flush()
    }

    /// Receives until something holds.
    func wait(for what: String, within limit: Duration = .seconds(10), until holds: () -> Bool) throws {
        let deadline = Deadline(in: limit)
        while !holds() {
            guard !deadline.hasPassed else { throw TestFailure("not so: \(what): \(streams)") }
            let bytes = try socket.receive(within: .milliseconds(deadline.milliseconds))
            guard !bytes.isEmpty else { throw TestFailure("the connection ended before \(what): \(streams)") }
            let goesOn = unsafe bytes.withUnsafeBufferPointer { unsafe session.receive($0, now: 0) }
            takeEvents(of: bytes)
            try flush()
            guard goesOn else { throw TestFailure("the connection is over before \(what)") }
        }
    }

    /// Receives until a stream is over.
    func outcome(of stream: Int32, within limit: Duration = .seconds(10)) throws -> Stream {
        try wait(for: "the end of stream \(stream)", within: limit) {
            streams[stream]?.hasEnded == true || streams[stream]?.reset != nil
        }
        return streams[stream] ?? Stream()
    }

    private func takeEvents(of bytes: [UInt8]) {
        while let event = session.nextEvent() {
            switch event {
            case .head(let stream, let ends):
                streams[stream, default: Stream()].head = text(stream)
                if ends { streams[stream]?.hasEnded = true }
            case .interim: break
            case .data(let stream, let start, let count):
                streams[stream]?.body += bytes[start..<start + count]
                session.consume(stream, count)
            case .trailers(let stream): streams[stream]?.trailers = text(stream)
            case .end(let stream): streams[stream]?.hasEnded = true
            case .closed(let stream, let code):
                if code != .noError { streams[stream]?.reset = code }
            case .drained, .refused, .goAway: break
            }
        }
    }

    private func text(_ stream: Int32) -> String {
        var buffer = ByteBuffer()
        session.takeHead(stream, into: &buffer)
        return String(decoding: buffer.array, as: UTF8.self)
    }
}
