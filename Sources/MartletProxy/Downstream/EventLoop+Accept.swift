internal import MartletConfig
internal import MartletIO
internal import MartletProvider
internal import MartletResponder

/// Accepts downstream connections.
///
/// A connection that carries a single request costs more than the request. While there are many of them
/// (``DeferAcceptPolicy``), listeners hold a connection until its first bytes arrive (`TCP_DEFER_ACCEPT`, tcp(7)), so
/// that it is accepted, read and served in one step; and one whose only request is complete is not registered with the
/// poller unless its response takes long. The cost is that an idle client is noticed a second late; otherwise it is
/// noticed immediately.
extension EventLoop {
    /// Most connections accepted from one listener before others have their turn.
    private static let acceptBatch = 64

    /// Accepts connections from a listener.
    mutating func accept(_ id: Int32) {
        guard let index = loop.downstreams.acceptor.index(ofListener: id) else { return }
        for _ in 0..<EventLoop.acceptBatch {
            guard let (fd, peer) = Socket.accept(loop.downstreams.acceptor.listeners[index].fd) else {
                guard IOError("accept4").isShortage else { return }
                if loop.freeCapacity() { continue }
                if !loop.downstreams.rejectOne(loop.downstreams.acceptor.listeners[index], &loop.context) {
                    loop.downstreams.pauseAccepting(&loop.context)
                }
                return
            }
            acceptConnection(fd, from: peer, by: loop.downstreams.acceptor.listeners[index])
        }
        // Of a socket that all loops accept from, the others take their share.
        if loop.context.overload.isWatched, !loop.downstreams.acceptor.listeners[index].isShared {
            OverloadControl.measureBacklog(
                loop.downstreams.acceptor.listeners[index].fd, perTurn: EventLoop.acceptBatch, &loop)
        }
    }

    private mutating func acceptConnection(_ fd: Int32, from peer: SocketEndpoint, by listener: ListenerSocket) {
        let bytes = peer.addressBytes
        // Behind a proxy the client's address counts, which is not known yet.
        let counted = peer.isUnix || listener.rules.expectsProxyHeader ? nil : bytes
        let isTrusted =
            peer.isUnix
            ? listener.rules.isTrusted : loop.context.snapshot.trustedProxies.contains { $0.contains(bytes) }
        let limits = loop.context.snapshot.limits
        var admission = loop.downstreams.acceptor.admit(counted, isDivided: !isTrusted, limits: limits)
        // In place of another one, of whoever where all are taken, and of the same network where it has its share.
        if admission == .refused && loop.freeCapacity()
            || admission == .refusedToNetwork && loop.freeCapacity(of: ClientNetwork(address: bytes))
        {
            admission = loop.downstreams.acceptor.admit(counted, isDivided: !isTrusted, limits: limits)
        }
        guard admission.isAdmitted else {
            loop.context.counters.connections.refused &+= 1
            loop.downstreams.rejectConnection(fd, listener.rules, &loop.context)
            return
        }
        let address = DownstreamAddress(
            bytes: bytes, text: peer.isUnix ? AddressText("unix".utf8) : AddressText(peer.addressUTF8),
            isTrusted: isTrusted, isNoted: loop.context.logs.access.needsNotes, port: peer.port, isUnix: peer.isUnix)
        let downstream = loop.downstreams.all.allocate()
        loop.downstreams[downstream].open(
            fd: fd, kind: .http1, rules: listener.rules, address: address,
            maximumHeadBytes: loop.context.snapshot.limits.headerBytes)
        if let handler = listener.handler { loop.downstreams[downstream].origin.handler = handler }
        loop.downstreams[downstream].origin.listener = listener.id
        loop.downstreams[downstream].handshake.tlsContext = listener.tls
        loop.downstreams[downstream].origin.admission = admission
        guard loop.downstreams.acceptor.deferAccept.isActive || loop.downstreams.register(downstream, &loop.context)
        else {
            return loop.close(downstream: downstream)
        }
        loop.context.counters.connections.accepted &+= 1
        loop.downstreams.acceptor.order.add(downstream, alive: loop.downstreams.all.count) {
            loop.downstreams.all.contains($0)
        }
        if loop.downstreams.acceptor.deferAccept.isActive { return readImmediately(downstream) }
        loop.startConnection(downstream)
    }

    // MARK: Connections for one request

    /// Reads a connection whose first bytes have arrived.
    private mutating func readImmediately(_ downstream: Handle<DownstreamConnection>) {
        loop.startConnection(downstream)
        guard loop.downstreams[downstream].isAlive else { return }
        readDownstream(downstream)
        guard loop.downstreams[downstream].isAlive else { return }
        if loop.downstreams.isFinalRequest(downstream, &loop.exchanges) {
            loop.downstreams.acceptor.deferRegistration(of: downstream, since: loop.now)
        } else if !loop.downstreams.register(downstream, &loop.context) {
            loop.abandon(downstream)
        }
    }
}
