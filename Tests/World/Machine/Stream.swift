import CLinux

/// One side of a connection: of TCP, or of a Unix socket.
package final class Stream: File {
    enum State { case new, connecting, connected, refused }

    var link: Link
    let isServer: Bool
    var state = State.new
    /// The address that it was bound to.
    var bound: Address?
    var family = AF_INET
    var isDatagram = false
    var other: Stream?
    /// Told of every change; for peers of the world, which have no descriptors.
    package var watcher: ((Stream) -> Void)?
    private var inbox = ByteQueue()
    private var inFlight = 0
    /// When the last bytes that were sent arrive.
    package private(set) var lastArrival: Int64 = 0
    private var hasSentEnd = false
    /// The peer will send nothing more.
    package private(set) var isAtEnd = false
    /// The connection was reset.
    package private(set) var isReset = false
    private var hasReportedReset = false
    /// A write found no room since there was some.
    private var wantsRoom = false
    var lingersNot = false

    init(_ machine: Machine, _ link: Link, isServer: Bool) {
        self.link = link
        self.isServer = isServer
        super.init(machine)
    }

    package var isConnected: Bool { state == .connected }
    package var isRefused: Bool { state == .refused }
    package var local: Address { isServer ? link.server : link.client }
    package var remote: Address { isServer ? link.client : link.server }
    private var weather: Weather { machine.network.weather(link) }

    override var ready: Ready {
        switch state {
        case .new: return [.output, .hangUp]
        case .connecting: return []
        case .refused: return [.input, .output, .error, .hangUp, .readHangUp]
        case .connected: break
        }
        if isReset { return hasReportedReset ? Ready.broken : Ready.broken.union(.error) }
        var ready: Ready = []
        if inbox.count > 0 || isAtEnd { ready.insert(.input) }
        if isAtEnd { ready.insert(.readHangUp) }
        if hasSentEnd || room > 0 { ready.insert(.output) }
        if isAtEnd, hasSentEnd { ready.insert(.hangUp) }
        return ready
    }

    /// Bytes that have not arrived.
    var unsent: Int { inFlight }

    private var room: Int {
        guard let other, !other.isClosed else { return weather.capacity }
        return weather.capacity - other.inbox.count - inFlight
    }

    /// The error that SO_ERROR gives, once.
    func takeError() -> Int32 {
        if state == .refused { return ECONNREFUSED }
        guard isReset, !hasReportedReset else { return 0 }
        hasReportedReset = true
        return ECONNRESET
    }

    override func changed(_ what: Ready) {
        super.changed(what)
        watcher?(self)
    }

    // MARK: Reading

    /// The bytes that can be read.
    package var available: Int { inbox.count }

    override func read(into bytes: UnsafeMutableRawBufferPointer, flags: Int32) -> Int {
        switch state {
        case .connected: break
        case .connecting: return -Int(EAGAIN)
        case .refused: return -Int(ECONNREFUSED)
        case .new: return -Int(ENOTCONN)
        }
        if isReset, inbox.count == 0 {
            if hasReportedReset { return 0 }
            hasReportedReset = true
            return -Int(ECONNRESET)
        }
        guard inbox.count > 0 else { return isAtEnd ? 0 : -Int(EAGAIN) }
        // Fewer bytes than fit mean that there are no more: programs rely on it (epoll(7)).
        let target = UnsafeMutableRawBufferPointer(rebasing: bytes.prefix(min(bytes.count, inbox.count)))
        if flags & Int32(MSG_PEEK) != 0 { return inbox.copy(into: target) }
        let count = inbox.take(into: target)
        giveRoom()
        return count
    }

    /// Takes all bytes that have arrived; for peers of the world.
    package func take(_ most: Int = .max) -> [UInt8] {
        let bytes = inbox.take(min(most, inbox.count))
        if !bytes.isEmpty { giveRoom() }
        return bytes
    }

    /// A writer that found no room is notified when a third of it is free.
    private func giveRoom() {
        guard let other, other.wantsRoom, other.room * 3 >= weather.capacity else { return }
        other.wantsRoom = false
        machine.at(machine.network.arrival(link)) { [other] in if !other.isClosed { other.changed(.output) } }
    }

    // MARK: Writing

    override func write(_ bytes: UnsafeRawBufferPointer, flags: Int32) -> Int {
        switch state {
        case .connected: break
        case .connecting: return -Int(EAGAIN)
        case .refused: return -Int(EPIPE)
        case .new: return -Int(ENOTCONN)
        }
        if isReset, !hasReportedReset {
            hasReportedReset = true
            return -Int(ECONNRESET)
        }
        if isReset || hasSentEnd { return -Int(EPIPE) }
        guard !bytes.isEmpty else { return 0 }
        var most = min(bytes.count, room)
        guard most > 0 else {
            wantsRoom = true
            return -Int(EAGAIN)
        }
        if most > 1, machine.network.random.chance(weather.short) {
            // For this moment the connection is full.
            most = 1 + machine.network.random.below(most)
            machine.at(machine.network.arrival(link)) { [self] in if !isClosed { changed(.output) } }
        }
        if most < bytes.count { wantsRoom = true }
        var rest = Array(bytes.prefix(most))
        if most > 1, machine.network.random.chance(weather.short) {
            let first = 1 + machine.network.random.below(most - 1)
            send(Array(rest.prefix(first)))
            rest.removeFirst(first)
        }
        send(rest)
        if machine.network.random.chance(weather.reset) { machine.at(lastArrival) { [self] in breakOff() } }
        return most
    }

    /// Sends what fits; for peers of the world.
    /// - Returns: how many bytes.
    package func put(_ bytes: ArraySlice<UInt8>) -> Int {
        bytes.withUnsafeBytes { max(write($0, flags: 0), 0) }
    }

    private func send(_ bytes: [UInt8]) {
        guard let other else { return }
        inFlight += bytes.count
        let time = max(machine.network.arrival(link), lastArrival)
        lastArrival = time
        machine.at(time) { [self] in
            inFlight -= bytes.count
            if other.isClosed { return resetBack() }
            guard !other.isReset else { return }
            other.inbox.append(bytes)
            other.changed(.input)
        }
    }

    /// The other side is gone: it resets.
    private func resetBack() {
        machine.at(machine.network.arrival(link)) { [self] in receiveReset() }
    }

    private func receiveReset() {
        guard !isReset, !isClosed else { return }
        isReset = true
        inbox.removeAll()
        changed([.input, .output, .error, .hangUp, .readHangUp])
    }

    /// Sends no more.
    package func finish() {
        guard !hasSentEnd, state == .connected, !isReset else { return }
        hasSentEnd = true
        let time = max(machine.network.arrival(link), lastArrival)
        lastArrival = time
        machine.at(time) { [self] in
            guard let other, !other.isClosed, !other.isReset else { return }
            other.isAtEnd = true
            other.changed([.input, .readHangUp])
        }
    }

    /// Closes the side of a peer of the world.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        watcher = nil
        closed()
    }

    /// Resets the connection from this side.
    package func abort() {
        guard !isClosed else { return }
        lingersNot = true
        close()
    }

    /// Resets both sides, as a network does that has lost its state.
    package func breakOff() {
        other?.receiveReset()
        receiveReset()
    }

    override func closed() {
        guard state == .connected, !isReset, let other else { return }
        // What was not read makes the end a reset.
        if inbox.count > 0 || lingersNot {
            let time = max(machine.network.arrival(link), lingersNot ? 0 : lastArrival)
            machine.at(time) { other.receiveReset() }
        } else {
            finish()
        }
    }
}

/// Bytes in order.
struct ByteQueue {
    private var bytes: [UInt8] = []
    private var first = 0

    var count: Int { bytes.count - first }

    mutating func append(_ more: [UInt8]) { bytes += more }

    mutating func removeAll() {
        bytes.removeAll()
        first = 0
    }

    func copy(into target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(target.count, count)
        bytes.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[first..<first + count])) }
        return count
    }

    mutating func take(into target: UnsafeMutableRawBufferPointer) -> Int {
        let taken = copy(into: target)
        drop(taken)
        return taken
    }

    mutating func take(_ most: Int) -> [UInt8] {
        let taken = Array(bytes[first..<first + most])
        drop(most)
        return taken
    }

    private mutating func drop(_ count: Int) {
        first += count
        if first == bytes.count {
            removeAll()
        } else if first > 65_536 {
            bytes.removeFirst(first)
            first = 0
        }
    }
}
