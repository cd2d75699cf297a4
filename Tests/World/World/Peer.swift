import WorldMachine

/// The side of a connection that is outside of the gateways: what it sends waits for room.
final class Peer {
    let stream: Stream
    var opened: () -> Void = {}
    var received: ([UInt8]) -> Void = { _ in }
    /// The other side sends no more, or the connection is broken.
    var ended: (_ isBroken: Bool) -> Void = { _ in }
    /// Bytes are not taken from the connection.
    var isDeaf = false { didSet { if !isDeaf { look() } } }
    private(set) var isOpen = false
    private(set) var hasEnded = false
    private var outgoing: ArraySlice<UInt8> = []
    private var wantsFinish = false
    private var isLooking = false

    init(_ stream: Stream) {
        self.stream = stream
        stream.watcher = { [weak self] _ in self?.look() }
        isOpen = stream.isConnected
    }

    /// Connects to a gateway.
    static func connect(_ machine: Machine, from client: Address, to server: Address) -> Peer {
        let stream = machine.network.connect(from: client, to: server) { _ in }
        return Peer(stream)
    }

    var unsent: Int { outgoing.count }

    func send(_ bytes: [UInt8]) {
        outgoing += bytes
        flush()
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// Ends the sending side when everything is sent.
    func finish() {
        wantsFinish = true
        flush()
    }

    func close() {
        hasEnded = true
        stream.close()
    }

    func abort() {
        hasEnded = true
        stream.abort()
    }

    private func flush() {
        while !outgoing.isEmpty {
            let count = stream.put(outgoing)
            if count == 0 { return }
            outgoing = outgoing.dropFirst(count)
        }
        if wantsFinish { stream.finish() }
    }

    private func look() {
        guard !hasEnded, !isLooking else { return }
        isLooking = true
        defer { isLooking = false }
        if stream.isRefused { return end(isBroken: true) }
        if !isOpen, stream.isConnected {
            isOpen = true
            opened()
        }
        flush()
        while !isDeaf, !hasEnded {
            let bytes = stream.take()
            if bytes.isEmpty { break }
            received(bytes)
        }
        if hasEnded { return }
        if stream.isReset { end(isBroken: true) } else if stream.isAtEnd, stream.available == 0 { end(isBroken: false) }
    }

    private func end(isBroken: Bool) {
        hasEnded = true
        ended(isBroken)
        stream.close()
    }
}
