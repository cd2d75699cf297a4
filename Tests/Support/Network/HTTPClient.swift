/// A client that sends exactly the given bytes and reads responses from the same connection.
package final class HTTPClient {
    package let socket: RawSocket
    package let reader: MessageReader
    /// Interim responses (1xx) that came before the last final one.
    package private(set) var interim: [HTTPMessage] = []

    /// Connects.
    package init(to endpoint: Endpoint, receiveBuffer: Int32? = nil) throws {
        socket = try RawSocket(connectingTo: endpoint, receiveBuffer: receiveBuffer)
        reader = MessageReader(socket)
    }

    /// Sends bytes as they are.
    package func send(_ text: String) throws { try socket.send(text) }

    /// Sends bytes as they are.
    package func send(_ bytes: [UInt8]) throws { try socket.send(bytes) }

    /// Sends a request made of its parts; `Host: localhost` joins unless a host is among the fields.
    package func send(
        _ method: String, _ target: String, _ fields: [(String, String)] = [], body: [UInt8]? = nil
    ) throws {
        var head = "\(method) \(target) HTTP/1.1\r\n"
        if !fields.contains(where: { $0.0.lowercased() == "host" }) { head += "Host: localhost\r\n" }
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        if let body { head += "Content-Length: \(body.count)\r\n" }
        try socket.send(Array((head + "\r\n").utf8) + (body ?? []))
    }

    /// The next final response on the connection.
    package func response(to method: String = "GET", within limit: Duration = .seconds(20)) throws -> HTTPMessage {
        interim = []
        return try reader.readResponse(to: method, interim: &interim, within: limit)
    }

    /// Sends a request and reads its response.
    package func exchange(
        _ method: String, _ target: String, _ fields: [(String, String)] = [], body: [UInt8]? = nil
    ) throws -> HTTPMessage {
        try send(method, target, fields, body: body)
        return try response(to: method)
    }

    package func close() { socket.close() }
}
