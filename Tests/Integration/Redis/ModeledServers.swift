import Foundation
import MartletCore
import MartletTesting
import Synchronization
import WorldRedis

/// Models of servers that clients reach over sockets.
final class ModeledServers: Sendable {
    fileprivate struct State {
        let group: RedisGroup
        /// The sockets of each server's clients.
        var sockets: [Int: [(peer: RedisPeer, socket: RawSocket)]] = [:]
        var stopped: Set<Int> = []
    }

    private let listeners: [Listener]
    private let state: Mutex<State>
    private let isClosed = Atomic(false)

    /// - Parameters:
    ///   - count: how many addresses there are.
    ///   - make: what is at the addresses.
    init(_ count: Int, _ make: ([RedisAddress], @escaping @Sendable () -> Int64) -> sending RedisGroup) throws {
        let listeners = try (0..<count).map { _ in try Listener(on: .loopback(0)) }
        self.listeners = listeners
        let addresses = listeners.map { RedisAddress(host: "127.0.0.1", port: Int($0.endpoint.port)) }
        state = Mutex(State(group: make(addresses) { Clock.system.unixMilliseconds }))
        for listener in listeners {
            Thread.detachNewThread { [self] in
                while let socket = listener.accept() { serve(socket, Int(listener.endpoint.port)) }
            }
        }
        Thread.detachNewThread { [self] in
            while !isClosed.load(ordering: .acquiring) {
                Thread.sleep(forTimeInterval: 0.005)
                change { group in for server in group.servers { server.advance() } }
            }
        }
    }

    /// The ports, in the order of the addresses.
    var ports: [UInt16] { listeners.map(\.endpoint.port) }

    func url(_ scheme: String, _ ports: some Sequence<UInt16>, path: String = "") -> String {
        "\(scheme)://" + ports.map { "127.0.0.1:\($0)" }.joined(separator: ",") + path
    }

    /// Does something with the servers; what they send as a result is sent.
    @discardableResult
    func change<Result: Sendable>(_ body: (RedisGroup) -> Result) -> Result {
        state.withLock { state in
            defer { state.flush() }
            return body(state.group)
        }
    }

    /// Ends a server's connections and accepts no others.
    func stop(_ port: Int) {
        state.withLock { state in
            state.stopped.insert(port)
            for (_, socket) in state.sockets[port] ?? [] { socket.abort() }
        }
    }

    func close() {
        isClosed.store(true, ordering: .releasing)
        for listener in listeners { listener.close() }
        for port in ports { stop(Int(port)) }
    }

    private func serve(_ socket: RawSocket, _ port: Int) {
        let index = state.withLock { state -> Int? in
            guard !state.stopped.contains(port),
                let server = state.group.servers.first(where: { $0.address.port == port })
            else { return nil }
            state.sockets[port, default: []].append((server.connect(), socket))
            return (state.sockets[port]?.count ?? 1) - 1
        }
        guard let index else { return socket.abort() }
        Thread.detachNewThread { [self] in
            while let bytes = try? socket.receive(within: .seconds(600)), !bytes.isEmpty {
                state.withLock { state in
                    state.sockets[port]?[index].peer.receive(bytes)
                    state.flush()
                }
            }
            state.withLock { $0.sockets[port]?[index].peer.close() }
        }
    }
}

extension ModeledServers.State {
    /// Sends what servers have written, and ends what they have closed.
    fileprivate func flush() {
        for (peer, socket) in sockets.values.flatMap(\.self) {
            if !peer.output.isEmpty {
                try? socket.send(peer.output)
                peer.output = []
            }
            if peer.isClosed { socket.abort() }
        }
    }
}
