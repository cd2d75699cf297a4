private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletIO

/// Downstream: how connections come in, and when events of theirs are asked for.
///
/// Clients that come for one request each cost more for their connections than for their requests. While there are many of
/// them (``SingleUseMeter``) listeners keep a connection until its first bytes are there (`TCP_DEFER_ACCEPT`, tcp(7)), so
/// that it is accepted, read and served in one go; and one whose only request is complete is not registered with the poller
/// unless its answer takes long. The price is that a client that says nothing is seen a second late; at other times it is
/// seen at once.
extension Worker {
    /// Most connections taken from one listener before others have their turn.
    private static let acceptBatch = 64
    /// How long an answer may take before its client is watched, in nanoseconds.
    static let unwatchedTime: Int64 = 20_000_000

    /// Takes connections off a listener's queue.
    mutating func accept(_ id: Int32) {
        guard let place = listeners.firstIndex(where: { $0.id == id }) else { return }
        for _ in 0..<Worker.acceptBatch {
            guard let (fd, peer) = Socket.accept(listeners[place].fd) else {
                guard martlet_errno() == EMFILE || martlet_errno() == ENFILE else { return }
                if makeRoom() { continue }
                return shedOne(listeners[place])
            }
            admit(fd, from: peer, by: listeners[place])
        }
    }

    /// Out of descriptors: the one in reserve is spent on telling a client so, or the listener would stay readable for ever.
    private mutating func shedOne(_ listener: ListenerSocket) {
        reserve.free()
        if let (fd, _) = Socket.accept(listener.fd) {
            counters.refused &+= 1
            turnAway(fd, listener.rules)
        }
        reserve.take()
    }

    private mutating func admit(_ fd: Int32, from peer: SocketEndpoint, by listener: ListenerSocket) {
        let bytes = peer.addressBytes
        // Behind a proxy it is the client's address that counts, which is not known yet.
        let isUncounted = peer.isUnix || listener.rules.takesProxyHeader
        var admission = connections.enter(isUncounted ? nil : bytes, limits: snapshot.limits)
        if admission == .refused, connections.isFull(snapshot.limits), makeRoom() {
            admission = connections.enter(isUncounted ? nil : bytes, limits: snapshot.limits)
        }
        guard admission != .refused else {
            counters.refused &+= 1
            turnAway(fd, listener.rules)
            return
        }
        let address = ClientAddress(
            bytes: bytes, text: peer.isUnix ? AddressText("unix".utf8) : AddressText(peer.addressUTF8),
            isTrusted: peer.isUnix ? listener.rules.isTrusted : snapshot.trustedProxies.contains { $0.contains(bytes) },
            port: peer.port,
            isUnix: peer.isUnix)
        let client = clients.take()
        clients[client].open(
            fd: fd, kind: .http1, rules: listener.rules, address: address,
            maximumHeadBytes: snapshot.limits.headerBytes)
        if let handler = listener.handler { clients[client].handler = handler }
        clients[client].listener = listener.id
        clients[client].security = listener.tls
        clients[client].admission = admission
        guard singleUse.isHigh || watch(client) else { return close(client: client) }
        counters.accepted &+= 1
        order.add(token(of: client), alive: clients.count) { clients.holds($0.index, $0.generation) }
        if singleUse.isHigh { return readAtOnce(client) }
        begin(wireOf: client)
    }

    private mutating func begin(wireOf client: Int32) {
        clients[client].rules.takesProxyHeader ? awaitProxyHeader(client) : beginWire(client)
    }

    /// Over the limit: a 503 where that can be read, and the connection is closed at once.
    private mutating func turnAway(_ fd: Int32, _ rules: ListenerRules) {
        guard !rules.isSecure else {
            _ = CLinux.close(fd)
            return
        }
        var out = ByteBuffer(capacity: 512)
        nextRequestID()
        unsafe Failure.tooManyConnections.write(
            into: &out, requestID: idText.bytes, date: dateText, isHead: false, close: true,
            offersBasic: false)
        let bytes = unsafe out.bytes
        _ = unsafe CLinux.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        // A request that is there and unread would have the answer thrown away.
        _ = receiveBuffer.receive(from: fd)
        _ = CLinux.close(fd)
    }

    // MARK: Connections for one request

    /// Reads a connection whose first bytes are there.
    private mutating func readAtOnce(_ client: Int32) {
        let generation = clients[client].generation
        begin(wireOf: client)
        guard clients.holds(client, generation) else { return }
        readClient(client)
        guard clients.holds(client, generation) else { return }
        if asksNoMore(client) {
            unwatched.append(
                Unwatched(client: EventToken(.client, index: client, generation: generation), since: now))
        } else if !watch(client) {
            abandon(client)
        }
    }

    /// Whether all that is left to do for a connection is to answer its one request.
    private func asksNoMore(_ client: Int32) -> Bool {
        let exchange = clients[client].exchange
        return exchange >= 0 && clients[client].kind == .http1 && clients[client].output.isEmpty
            && exchanges[exchange].isRequestComplete && !exchanges[exchange].keepsAlive
            && exchanges[exchange].tunnel < 0
    }

    /// Has events of a client's socket reported, if they are not yet.
    /// - Returns: whether they are.
    @discardableResult
    mutating func watch(_ client: Int32) -> Bool {
        if clients[client].isWatched { return true }
        let token = EventToken(.client, index: client, generation: clients[client].generation)
        clients[client].isWatched = (try? poller.add(clients[client].fd, .connection, token: token.raw)) != nil
        return clients[client].isWatched
    }

    /// Watches clients whose answers take long: they may leave.
    mutating func watchOverdue() {
        while let first = unwatched.first, now &- first.since >= Worker.unwatchedTime {
            _ = unwatched.popFirst()
            let client = first.client.index
            if clients.holds(client, first.client.generation), !watch(client) { abandon(client) }
        }
    }

    /// How long the loop may sleep for their sake, in milliseconds.
    var unwatchedPatience: Int32 {
        guard let first = unwatched.first else { return .max }
        return Int32(clamping: max(first.since &+ Worker.unwatchedTime &- now, 0) / 1_000_000 &+ 1)
    }

    /// Tells listeners how to accept, where that has changed or may have.
    mutating func meterConnections() {
        guard singleUse.look(at: now) else { return }
        for listener in listeners { Socket.acceptReadable(listener.fd, singleUse.isHigh) }
    }
}

/// A client that is not watched yet.
struct Unwatched {
    let client: EventToken
    let since: Int64
}
