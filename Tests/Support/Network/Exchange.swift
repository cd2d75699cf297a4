/// One request at a scripted upstream, and the means to respond to it well or badly.
package final class Exchange {
    /// The request; with its body once that is read.
    package private(set) var request: HTTPMessage
    /// Which request of the upstream this is, from 0.
    package let index: Int
    package let socket: RawSocket
    /// Set by a script that wants the connection closed after its response.
    package var closes = false

    private let reader: MessageReader
    private let keep: (HTTPMessage) -> Void

    init(
        _ request: HTTPMessage, _ index: Int, _ socket: RawSocket, _ reader: MessageReader,
        keep: @escaping (HTTPMessage) -> Void
    ) {
        self.request = request
        self.index = index
        self.socket = socket
        self.reader = reader
        self.keep = keep
    }

    /// Bytes that came behind the request's head, or its body.
    package var pending: [UInt8] { reader.pending }

    /// Reads the request's body; what came is recorded even where it ends too early.
    package func readBody() throws {
        defer { keep(request) }
        try reader.readRequestBody(of: &request)
    }

    /// Sends bytes as they are.
    package func send(_ text: String) throws { try socket.send(text) }

    /// Sends bytes as they are.
    package func send(_ bytes: [UInt8]) throws { try socket.send(bytes) }

    /// A plain response with its length.
    package func respond(_ status: Int, _ fields: [(String, String)] = [], body: String = "") throws {
        try respond(status, fields, bytes: Array(body.utf8))
    }

    /// A plain response with its length.
    package func respond(_ status: Int, _ fields: [(String, String)] = [], bytes: [UInt8]) throws {
        var head = "HTTP/1.1 \(status) Scripted\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        head += "Content-Length: \(bytes.count)\r\n\r\n"
        try socket.send(Array(head.utf8) + (request.method == "HEAD" ? [] : bytes))
    }

    /// Blocks until the other side ends the connection; the caller decides how long that may take.
    package func waitForEnd(within limit: Duration = .seconds(20)) -> Bool { socket.isEnded(within: limit) }
}
