import Foundation
import MartletCore
import MartletHTTP2
import MartletTLS
import MartletTesting

/// A server that lets connections end under requests as a test says, and counts which requests arrived.
///
/// In clear text it speaks HTTP/1.1; over TLS what ALPN comes to, HTTP/2 first.
final class CuttingServer: Sendable {
    /// What happens once a request is read.
    enum Ending: Sendable, CaseIterable {
        case respond
        /// The connection is reset.
        case reset
        /// The connection is closed in order.
        case close
        /// A part of a response, then a reset.
        case cut
        /// `REFUSED_STREAM`; over HTTP/1 a close.
        case refuse
        /// `GOAWAY` with no stream done, then a close; over HTTP/1 a close.
        case goAway
        /// `417`, as if a header were not to the server's liking.
        case expectationFailed
    }

    /// - Parameters: the request's target, and how many of that target have arrived, this one counted.
    typealias Script = @Sendable (_ target: String, _ count: Int) -> Ending

    private struct Record: Sendable {
        var arrivals: [String: Int] = [:]
        var protocols: Set<String> = []
        var sockets: [RawSocket] = []
    }

    private let listener: Listener
    private let record = Box(Record())
    let isSecure: Bool

    /// - Parameter body: the body of the response to a request.
    init(
        _ context: TLSServerContext? = nil, body: @escaping @Sendable (String) -> String = { _ in "ok" },
        _ script: @escaping Script
    ) throws {
        listener = try Listener(on: .loopback(0))
        isSecure = context != nil
        let (listener, record) = (self.listener, self.record)
        _ = Background {
            while let socket = listener.accept() {
                record.withLock { $0.sockets.append(socket) }
                _ = Background {
                    let connection = try CuttingConnection(socket, context)
                    try? Self.serve(connection, body, record, script)
                    socket.close()
                }
            }
        }
    }

    deinit {
        listener.close()
        for socket in record.value.sockets { socket.abort() }
    }

    var port: UInt16 { listener.endpoint.port }

    var url: String { (isSecure ? "https" : "http") + "://\(listener.endpoint)" }
    /// How often each target arrived.
    var arrivals: [String: Int] { record.value.arrivals }
    /// What was spoken.
    var protocols: Set<String> { record.value.protocols }
    var connections: Int { record.value.sockets.count }

    private static func serve(
        _ connection: CuttingConnection, _ body: (String) -> String, _ record: Box<Record>, _ script: Script
    ) throws {
        try connection.handshake()
        let name = connection.isHTTP2 ? "h2" : "http/1.1"
        record.withLock { _ = $0.protocols.insert(name) }
        let requests: any CuttingRequests =
            connection.isHTTP2 ? try CuttingStreams(connection) : CuttingMessages(connection)
        while let target = try requests.next() {
            let count = record.withLock { record in
                record.arrivals[target, default: 0] += 1
                return record.arrivals[target] ?? 0
            }
            let ending = script(target, count)
            try requests.end(ending, body(target))
            if ending != .respond, ending != .expectationFailed { return ending == .reset ? connection.reset() : () }
        }
    }
}

/// Requests one after the other on one connection.
private protocol CuttingRequests {
    /// The next request's target, once it is whole; `nil` at the end.
    func next() throws -> String?
    func end(_ ending: CuttingServer.Ending, _ body: String) throws
}

/// The bytes of a connection, under TLS or not.
private final class CuttingConnection {
    private let socket: RawSocket
    private var engine: TLSEngine?
    private var plain: [UInt8] = []

    init(_ socket: RawSocket, _ context: TLSServerContext?) throws {
        self.socket = socket
        engine = try context?.makeEngine()
    }

    private(set) var isHTTP2 = false

    func handshake() throws {
        guard engine != nil else { return }
        while engine?.isEstablished == false { try fill() }
        isHTTP2 = engine?.applicationProtocol == .http2
    }

    /// What came since, at least one byte; empty at the end.
    func receive() throws -> [UInt8] {
        while plain.isEmpty { guard try fill() else { return [] } }
        defer { plain = [] }
        return plain
    }

    @discardableResult private func fill() throws -> Bool {
        let bytes = try socket.receive(within: .seconds(60))
        guard engine != nil else {
            plain += bytes
            return !bytes.isEmpty
        }
        guard !bytes.isEmpty else { return false }
        var opened = ByteBuffer()
        try unsafe bytes.withUnsafeBufferPointer { try unsafe engine?.receive($0, plaintext: &opened) }
        plain += opened.array
        try flush()
        return true
    }

    func send(_ bytes: [UInt8]) throws {
        guard engine != nil else { return try socket.send(bytes) }
        try unsafe bytes.withUnsafeBufferPointer { try unsafe engine?.send($0) }
        try flush()
    }

    private func flush() throws {
        var output = ByteBuffer()
        engine?.dequeueCiphertext(into: &output)
        if !output.isEmpty { try socket.send(output.array) }
    }

    func reset() { socket.reset() }
}

private final class CuttingMessages: CuttingRequests {
    private let connection: CuttingConnection
    private var buffer: [UInt8] = []

    init(_ connection: CuttingConnection) { self.connection = connection }

    func next() throws -> String? {
        while true {
            let text = String(decoding: buffer, as: UTF8.self)
            if let end = text.range(of: "\r\n\r\n") {
                let head = text[..<end.lowerBound].split(separator: "\r\n")
                let length =
                    head.first { $0.lowercased().hasPrefix("content-length:") }
                    .flatMap { Int($0.split(separator: ":")[1].trimmingCharacters(in: .whitespaces)) } ?? 0
                // With `Expect` the body is asked for by a response that is never sent here.
                let isHeld = head.contains { $0.lowercased().hasPrefix("expect:") }
                let size = text[..<end.upperBound].utf8.count + (isHeld ? 0 : length)
                if buffer.count >= size {
                    buffer.removeFirst(size)
                    return String(head[0].split(separator: " ")[1])
                }
            }
            let bytes = try connection.receive()
            guard !bytes.isEmpty else { return nil }
            buffer += bytes
        }
    }

    func end(_ ending: CuttingServer.Ending, _ body: String) throws {
        switch ending {
        case .respond:
            try connection.send(Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8))
        case .cut: try connection.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\no".utf8))
        case .expectationFailed:
            try connection.send(Array("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n".utf8))
        case .reset, .close, .refuse, .goAway: break
        }
    }
}

private final class CuttingStreams: CuttingRequests {
    /// Length 8, type 7, stream 0; no stream was done, no error.
    private static let goAway: [UInt8] = [0, 0, 8, 7, 0, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 8)

    private let connection: CuttingConnection
    private let session: HTTP2Session
    private var targets: [Int32: String] = [:]
    private var ready: [Int32] = []
    private var current: Int32 = 0

    init(_ connection: CuttingConnection) throws {
        self.connection = connection
        session = try HTTP2Session.server(HTTP2Options())
        try flush()
    }

    deinit { session.free() }

    func next() throws -> String? {
        while ready.isEmpty {
            let bytes = try connection.receive()
            guard !bytes.isEmpty else { return nil }
            let goesOn = unsafe bytes.withUnsafeBufferPointer { unsafe session.receive($0, now: 0) }
            while let event = session.nextEvent() {
                switch event {
                case .head(let stream, let ends):
                    var head = ByteBuffer()
                    session.takeHead(stream, into: &head)
                    targets[stream] = String(String(decoding: head.array, as: UTF8.self).split(separator: " ")[1])
                    if ends { ready.append(stream) }
                case .data(let stream, _, let count): session.consume(stream, count)
                case .end(let stream): ready.append(stream)
                case .interim, .trailers, .closed, .drained, .refused, .goAway: break
                }
            }
            try flush()
            guard goesOn else { return nil }
        }
        current = ready.removeFirst()
        return targets[current]
    }

    func end(_ ending: CuttingServer.Ending, _ body: String) throws {
        switch ending {
        case .respond, .cut:
            let head = "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
            unsafe Array(head.utf8).withUnsafeBufferPointer { unsafe session.submitHead(current, $0, ends: false) }
            if ending == .respond {
                unsafe Array(body.utf8).withUnsafeBufferPointer { unsafe session.send(current, $0) }
                unsafe [UInt8]().withUnsafeBufferPointer { unsafe session.end(current, trailers: $0) }
            }
        case .expectationFailed:
            let head = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"
            unsafe Array(head.utf8).withUnsafeBufferPointer { unsafe session.submitHead(current, $0, ends: true) }
        case .refuse: session.reset(current, .refusedStream)
        case .goAway: try connection.send(Self.goAway)
        case .reset, .close: break
        }
        try flush()
    }

    private func flush() throws {
        var output = ByteBuffer()
        session.takeOutput(into: &output, upTo: 1 << 20)
        if !output.isEmpty { try connection.send(output.array) }
    }
}
