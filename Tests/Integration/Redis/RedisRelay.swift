import Foundation
import MartletTesting
import Synchronization
import WorldRedis

/// Stands before a real server: what clients send goes to the server's model as well, one command at a time, and the
/// replies are compared.
final class RedisRelay: Sendable {
    private struct State {
        let twin: RedisTwin
        var connections: [Int: RedisTwin.Connection] = [:]
    }

    private let listener: Listener
    private let state: Mutex<State>
    private let sockets = Box<[RawSocket]>([])

    init(to server: RedisServer) throws {
        listener = try Listener(on: .loopback(0))
        state = Mutex(State(twin: RedisTwin(of: server.port, .now())))
        Thread.detachNewThread { [self] in
            while let socket = listener.accept() { serve(socket) }
        }
    }

    deinit { listener.close() }

    /// As `store.url` is written.
    var url: String { "redis://127.0.0.1:\(listener.endpoint.port)" }
    var differences: [String] { state.withLock { $0.twin.differences } }
    var scriptCount: Int { state.withLock { $0.twin.scriptCount } }
    var scriptRuns: [[[UInt8]]] { state.withLock { $0.twin.scriptRuns } }
    var unknownCommands: [String] { state.withLock { $0.twin.model.unknownCommands } }

    /// Ends all connections, as a network would.
    func reset() { for socket in sockets.value { socket.abort() } }

    /// Accepts no more clients.
    func close() {
        listener.close()
        reset()
    }

    private func serve(_ socket: RawSocket) {
        let number = sockets.withLock { sockets in
            sockets.append(socket)
            return sockets.count
        }
        Thread.detachNewThread { [self] in
            var received: [UInt8] = []
            while let bytes = try? socket.receive(within: .seconds(600)), !bytes.isEmpty {
                received += bytes
                while let end = RESP.end(of: received, from: 0) {
                    let words = RESP.words(Array(received[..<end]))
                    received.removeFirst(end)
                    guard let reply = try? forward(words, number) else { return socket.abort() }
                    try? socket.send(reply)
                }
            }
            state.withLock { $0.connections[number] = nil }
        }
    }

    private func forward(_ words: [[UInt8]], _ number: Int) throws -> [UInt8] {
        try state.withLock { state in
            let connection = try state.connections[number] ?? state.twin.connect()
            state.connections[number] = connection
            return try connection.send(words)
        }
    }
}
