private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletReports
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
        guard let index = acceptor.index(ofListener: id) else { return }
        for _ in 0..<EventLoop.acceptBatch {
            guard let (fd, peer) = Socket.accept(acceptor.listeners[index].fd) else {
                guard martlet_errno() == EMFILE || martlet_errno() == ENFILE else { return }
                if freeCapacity() { continue }
                return rejectOne(acceptor.listeners[index])
            }
            acceptConnection(fd, from: peer, by: acceptor.listeners[index])
        }
    }

    /// Out of descriptors: uses the reserved one to reject a connection, or the listener would stay readable forever.
    private mutating func rejectOne(_ listener: ListenerSocket) {
        acceptor.reservedDescriptor.release()
        if let (fd, _) = Socket.accept(listener.fd) {
            counters.connections.refused &+= 1
            rejectConnection(fd, listener.rules)
        }
        acceptor.reservedDescriptor.acquire()
    }

    private mutating func acceptConnection(_ fd: Int32, from peer: SocketEndpoint, by listener: ListenerSocket) {
        let bytes = peer.addressBytes
        // Behind a proxy the client's address counts, which is not known yet.
        let isUncounted = peer.isUnix || listener.rules.expectsProxyHeader
        var admission = acceptor.admit(isUncounted ? nil : bytes, limits: snapshot.limits)
        if acceptor.admitsInstead(admission, limits: snapshot.limits), freeCapacity() {
            admission = acceptor.admit(isUncounted ? nil : bytes, limits: snapshot.limits)
        }
        guard admission != .refused else {
            counters.connections.refused &+= 1
            rejectConnection(fd, listener.rules)
            return
        }
        let address = DownstreamAddress(
            bytes: bytes, text: peer.isUnix ? AddressText("unix".utf8) : AddressText(peer.addressUTF8),
            isTrusted: peer.isUnix ? listener.rules.isTrusted : snapshot.trustedProxies.contains { $0.contains(bytes) },
            port: peer.port,
            isUnix: peer.isUnix)
        let downstream = downstreams.allocate()
        downstreams[downstream].open(
            fd: fd, kind: .http1, rules: listener.rules, address: address,
            maximumHeadBytes: snapshot.limits.headerBytes)
        if let handler = listener.handler { downstreams[downstream].origin.handler = handler }
        downstreams[downstream].origin.listener = listener.id
        downstreams[downstream].handshake.tlsContext = listener.tls
        downstreams[downstream].origin.admission = admission
        guard acceptor.deferAccept.isActive || register(downstream) else { return close(downstream: downstream) }
        counters.connections.accepted &+= 1
        acceptor.order.add(downstream, alive: downstreams.count) { downstreams.contains($0) }
        if acceptor.deferAccept.isActive { return readImmediately(downstream) }
        startConnection(downstream)
    }

    private mutating func startConnection(_ downstream: Handle<DownstreamConnection>) {
        downstreams[downstream].origin.rules.expectsProxyHeader
            ? awaitProxyHeader(downstream) : startTransport(downstream)
    }

    /// Over the limit: responds with 503 where the client can read it, and closes the connection immediately.
    private mutating func rejectConnection(_ fd: Int32, _ rules: ListenerRules) {
        guard !rules.isSecure else {
            _ = CLinux.close(fd)
            return
        }
        var out = ByteBuffer(capacity: 512)
        logs.requestIDs.next()
        unsafe Failure.tooManyConnections.write(
            into: &out, requestID: logs.requestIDs.text.bytes, date: clock.dateText, isHead: false, close: true,
            offersBasic: false)
        let bytes = unsafe out.bytes
        _ = unsafe CLinux.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        // With an unread request, closing would discard the response.
        _ = scratch.receiveBuffer.receive(from: fd)
        _ = CLinux.close(fd)
    }

    // MARK: Connections for one request

    /// Reads a connection whose first bytes have arrived.
    private mutating func readImmediately(_ downstream: Handle<DownstreamConnection>) {
        startConnection(downstream)
        guard downstreams[downstream].isAlive else { return }
        readDownstream(downstream)
        guard downstreams[downstream].isAlive else { return }
        if isFinalRequest(downstream) {
            acceptor.deferRegistration(of: downstream, since: now)
        } else if !register(downstream) {
            abandon(downstream)
        }
    }

    /// Whether all that is left to do for a connection is the response to its final request.
    private func isFinalRequest(_ downstream: Handle<DownstreamConnection>) -> Bool {
        let exchange = downstreams[downstream].exchange
        return !exchange.isNone && downstreams[downstream].kind == .http1
            && downstreams[downstream].transport.output.isEmpty
            && exchanges[exchange].body.isComplete && !exchanges[exchange].request.keepsAlive
            && exchanges[exchange].tunnel.isNone
    }
}
