import CLinux

/// An address of the world: IPv4 and a port, or the path of a Unix socket.
package struct Address: Hashable, CustomStringConvertible, Sendable {
    package var host: UInt32
    package var port: UInt16
    package var path: String = ""

    package init(host: UInt32, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// - Parameter last: of 10.0.0.x.
    package init(_ last: Int, _ port: Int) { self.init(host: 0x0a00_0000 + UInt32(last), port: UInt16(port)) }

    package init(path: String) {
        self.init(host: 0, port: 0)
        self.path = path
    }

    package var hostText: String { "\(host >> 24).\(host >> 16 & 255).\(host >> 8 & 255).\(host & 255)" }
    package var description: String { path.isEmpty ? "\(hostText):\(port)" : path }

    /// Reads a `sockaddr`.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 2 else { return nil }
        switch Int32(bytes.loadUnaligned(as: UInt16.self)) {
        case AF_INET:
            guard bytes.count >= 8 else { return nil }
            self.init(
                host: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self).bigEndian,
                port: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self).bigEndian)
        case AF_UNIX: self.init(path: String(decoding: bytes.dropFirst(2).prefix { $0 != 0 }, as: UTF8.self))
        default: return nil
        }
    }

    /// Writes a `sockaddr`.
    func write(_ pointer: UnsafeMutableRawPointer?, _ length: UnsafeMutablePointer<UInt32>?) {
        guard let pointer, let length else { return }
        var bytes: [UInt8]
        if path.isEmpty, host != 0 || port != 0 {
            bytes = [UInt8](repeating: 0, count: 16)
            bytes[0] = UInt8(AF_INET)
            for index in 0..<2 { bytes[2 + index] = UInt8(truncatingIfNeeded: port >> (8 - 8 * index)) }
            for index in 0..<4 { bytes[4 + index] = UInt8(truncatingIfNeeded: host >> (24 - 8 * index)) }
        } else {
            bytes = [UInt8(AF_UNIX), 0] + Array(path.utf8) + [0]
        }
        pointer.copyMemory(from: bytes, byteCount: min(bytes.count, Int(length.pointee)))
        length.pointee = UInt32(bytes.count)
    }
}

/// How connections between two hosts behave.
package struct Weather: Sendable {
    /// How long bytes are on their way, in microseconds.
    package var delay: ClosedRange<Int> = 20...300
    /// How often a write takes only some of the bytes, a read gives only some, and bytes arrive in pieces, in a thousand.
    package var short = 30
    /// How often a connection is reset when bytes arrive, in a thousand.
    package var reset = 0
    /// How often bytes are late, in a thousand, and how much, in microseconds.
    package var late = 5
    package var lateness: ClosedRange<Int> = 10_000...400_000
    /// The bytes that fit into a connection in one direction.
    package var capacity = 64 * 1024

    package init() {}
}

/// What carries bytes between processes and peers.
package final class Network {
    unowned var machine: Machine!
    package var random: SeededRandom
    /// Of all connections, unless ``hosts`` says otherwise for the host that is connected to.
    package var weather = Weather()
    package var hosts: [UInt32: Weather] = [:]
    /// Of Unix sockets.
    private var local = Weather()
    /// Until when nothing reaches or leaves a host.
    package var cut: [UInt32: Int64] = [:]
    /// Until when nothing passes between two hosts, the lower one first.
    private var cutPairs: [UInt64: Int64] = [:]
    var listeners: [Address: [Listener]] = [:]
    /// Peers of the world that accept connections.
    package var services: [Address: (Stream) -> Void] = [:]
    private var lastPort: UInt16 = 20_000

    init(_ random: SeededRandom) {
        self.random = random
        local.short = 0
    }

    func nextPort() -> UInt16 {
        lastPort = lastPort == 60_000 ? 20_001 : lastPort + 1
        return lastPort
    }

    func weather(_ link: Link) -> Weather {
        // What stays on one machine has none.
        guard link.server.path.isEmpty else { return local }
        return hosts[link.server.host] ?? weather
    }

    /// Lets nothing pass between two hosts for a time.
    package func cut(_ one: UInt32, _ other: UInt32, for time: Int64) {
        cutPairs[UInt64(min(one, other)) << 32 | UInt64(max(one, other))] = machine.now + time
    }

    private func opened(_ link: Link) -> Int64 {
        let (one, other) = (link.client.host, link.server.host)
        let pair = cutPairs.isEmpty ? 0 : cutPairs[UInt64(min(one, other)) << 32 | UInt64(max(one, other))] ?? 0
        return max(cut[one] ?? 0, cut[other] ?? 0, pair)
    }

    /// When what is sent now arrives.
    func arrival(_ link: Link) -> Int64 {
        guard link.server.path.isEmpty else { return machine.now }
        let weather = weather(link)
        var delay = random.within(weather.delay)
        if random.chance(weather.late) { delay += random.within(weather.lateness) }
        return max(machine.now, opened(link)) + Int64(delay) * 1000
    }

    /// Connects a peer of the world to a listener.
    /// - Returns: the peer's side; it is notified when the connection stands or has failed.
    package func connect(from client: Address, to server: Address, _ watcher: @escaping (Stream) -> Void) -> Stream {
        let stream = Stream(machine, Link(client: client, server: server), isServer: false)
        stream.watcher = watcher
        start(stream)
        return stream
    }

    func start(_ stream: Stream) {
        let link = stream.link
        stream.state = .connecting
        machine.at(arrival(link)) { [self] in
            guard !stream.isClosed else { return }
            let other = Stream(machine, link, isServer: true)
            if let service = services[link.server] {
                join(stream, other)
                service(other)
            } else if let all = listeners[link.server], let listener = all.isEmpty ? nil : random.pick(all) {
                // A full queue drops the request; it is repeated.
                guard listener.queue.count < listener.limit else {
                    machine.after(1_000_000_000) { [self] in if !stream.isClosed { start(stream) } }
                    return
                }
                join(stream, other)
                listener.offer(other)
            } else {
                refuse(stream)
                return
            }
            machine.at(arrival(link)) {
                guard stream.state == .connecting else { return }
                stream.state = .connected
                stream.changed(.output)
            }
        }
    }

    func pair() -> (Stream, Stream) {
        let link = Link(client: Address(path: "pair"), server: Address(path: "pair"))
        let (one, other) = (Stream(machine, link, isServer: false), Stream(machine, link, isServer: true))
        one.state = .connected
        join(one, other)
        return (one, other)
    }

    private func refuse(_ stream: Stream) {
        machine.at(arrival(stream.link)) {
            guard stream.state == .connecting else { return }
            stream.state = .refused
            stream.changed([.output, .error, .hangUp])
        }
    }

    private func join(_ one: Stream, _ other: Stream) {
        one.other = other
        other.other = one
        other.state = .connected
    }
}

/// The two ends of a connection.
final class Link {
    let client: Address
    let server: Address

    init(client: Address, server: Address) {
        self.client = client
        self.server = server
    }
}

/// A listening socket.
final class Listener: File {
    let address: Address
    var queue: [Stream] = []
    var limit = 128

    init(_ machine: Machine, _ address: Address) {
        self.address = address
        super.init(machine)
    }

    override var ready: Ready { queue.isEmpty ? [] : .input }

    func offer(_ stream: Stream) {
        queue.append(stream)
        changed(.input)
    }

    func accept() -> Stream? { queue.isEmpty ? nil : queue.removeFirst() }

    override func closed() {
        machine.network.listeners[address]?.removeAll { $0 === self }
        for stream in queue { stream.abort() }
    }
}
