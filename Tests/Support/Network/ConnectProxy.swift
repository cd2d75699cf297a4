import Foundation

/// An HTTP proxy that knows `CONNECT` alone, and leads every tunnel to one address, whatever its name.
package final class ConnectProxy: Sendable {
    private let listener: Listener
    private let heads = Box<[String]>([])

    /// Starts to listen.
    /// - Parameters:
    ///   - target: where tunnels lead.
    ///   - status: what it responds with; no tunnel is opened for another one than 200.
    package init(to target: Endpoint, status: Int = 200) throws {
        listener = try Listener(on: .loopback(0))
        let (listener, heads) = (listener, heads)
        Thread.detachNewThread {
            while let client = listener.accept() {
                Thread.detachNewThread { Self.serve(client, target, status, heads) }
            }
        }
    }

    deinit { listener.close() }

    package var url: String { "http://\(listener.endpoint)" }
    /// The heads of all requests so far.
    package var requests: [String] { heads.value }

    private static func serve(_ client: RawSocket, _ target: Endpoint, _ status: Int, _ heads: Box<[String]>) {
        defer { client.close() }
        var head = ""
        while !head.contains("\r\n\r\n") {
            guard let bytes = try? client.receive(), !bytes.isEmpty else { return }
            head += String(decoding: bytes, as: UTF8.self)
        }
        heads.withLock { [head] in $0.append(head) }
        try? client.send("HTTP/1.1 \(status) Status\r\nContent-Length: 0\r\n\r\n")
        guard status == 200, let server = try? RawSocket(connectingTo: target) else { return }
        Thread.detachNewThread { copy(from: server, to: client) }
        copy(from: client, to: server)
        server.abort()
    }

    private static func copy(from source: RawSocket, to target: RawSocket) {
        while let bytes = try? source.receive(within: .seconds(60)), !bytes.isEmpty {
            guard (try? target.send(bytes)) != nil else { break }
        }
        target.abort()
    }
}
