internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletIO
internal import MartletProvider
internal import MartletResponder
internal import MartletTLS

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
            let backlog = Socket.backlog(of: loop.downstreams.acceptor.listeners[index].fd)
            loop.context.overload.isBehind(by: backlog / EventLoop.acceptBatch)
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
            isTrusted: isTrusted, port: peer.port, isUnix: peer.isUnix)
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

/// The PROXY protocol: the client address that a trusted load balancer sends.
extension EventLoop {
    /// Handles bytes of the header, and perhaps of what follows it.
    mutating func receiveProxyHeader(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe loop.downstreams[downstream].reader.input.append(bytes)
        let received = unsafe loop.downstreams[downstream].reader.input.bytes
        switch unsafe ProxyHeader.parse(received.span) {
        case .needMore: return
        case .failure(let failure):
            return loop.rejectProxyHeader(downstream, failure.code)
        case .complete(let count, let peer):
            switch peer {
            case .address(let address):
                guard loop.downstreams.applyProxyAddress(downstream, address, &loop.context) else {
                    return loop.close(downstream: downstream)
                }
            // A client that the balancer does not identify: its forwarding headers are not trusted.
            case .unknown: loop.downstreams[downstream].origin.address.isTrusted = false
            case .local: break
            }
            loop.downstreams[downstream].reader.input.consume(count)
        }
        loop.downstreams.startTransport(downstream, &loop.context)
        guard !loop.downstreams[downstream].reader.input.isEmpty else {
            return loop.downstreams[downstream].reader.input.release()
        }
        var rest = ByteBuffer()
        swap(&rest, &loop.downstreams[downstream].reader.input)
        unsafe receivedBytes(downstream, rest.bytes)
    }
}

/// TLS between a downstream socket and its HTTP.
extension EventLoop {
    // MARK: TLS

    /// Continues as many handshakes as one iteration of the loop may.
    mutating func advanceHandshakes() {
        var done = 0
        while let (downstream, work) = loop.context.threads.handshakeQueue.next(after: done) {
            // Entries of closed connections count too: releasing an engine is not free.
            done += 1
            guard loop.downstreams.all.contains(downstream) else { continue }
            switch work {
            case .finished(let step): handshakeStepFinished(downstream, step)
            case .events:
                let readiness = loop.downstreams[downstream].handshake.queuedEvents
                loop.downstreams[downstream].handshake.queuedEvents = []
                downstreamIsReady(downstream, readiness)
            }
        }
    }

    /// Handles bytes of a handshake.
    ///
    /// The server's first flight costs a signature, which would hold up the loop's other connections: a thread computes
    /// it, the rest of the handshake stays on the loop.
    mutating func advanceHandshake(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        if loop.downstreams[downstream].transport.engine == nil {
            guard let tls = loop.downstreams[downstream].handshake.tlsContext.take() else {
                return loop.close(downstream: downstream)
            }
            do throws(TLSError) {
                loop.downstreams[downstream].transport.engine = try tls.makeEngine()
            } catch {
                return loop.rejectHandshake(downstream, error.code)
            }
        }
        if unsafe loop.downstreams[downstream].transport.engine?.bufferClientHello(bytes) == true {
            return continueHandshake(downstream)
        }
        let isCheap =
            loop.downstreams[downstream].handshake.hasSentServerHello
            && loop.downstreams[downstream].transport.engine?.version == "TLSv1.3"
        var lent: TLSEngine?
        swap(&lent, &loop.downstreams[downstream].transport.engine)
        guard let engine = lent else { return loop.close(downstream: downstream) }
        let step = HandshakeStep(consume engine, input: unsafe Array(bytes))
        if isCheap {
            step.run()
            return handshakeStepFinished(downstream, step)
        }
        loop.downstreams[downstream].handshake.isOffloaded = true
        let deadline = MonotonicTime(nanoseconds: loop.downstreams[downstream].timer.deadline)
        // Networks take turns: many handshakes of one network delay only that network.
        let owner = loop.downstreams.network(of: downstream)?.workOwner ?? .anonymous
        loop.context.threads.handshakePool.submit(until: deadline, for: owner) { [mailbox = loop.mailbox] rejection in
            if rejection == nil { step.run() }
            mailbox.post(.handshake(downstream: downstream, step))
        }
    }

    /// A step of a handshake has finished.
    mutating func handshakeStepFinished(_ downstream: Handle<DownstreamConnection>, _ step: HandshakeStep) {
        guard step.engine != nil else { return loop.close(downstream: downstream) }
        swap(&loop.downstreams[downstream].transport.engine, &step.engine)
        loop.downstreams[downstream].handshake.isOffloaded = false
        loop.downstreams[downstream].handshake.hasSentServerHello = true
        loop.context.scratch.plaintext.removeAll()
        loop.downstreams[downstream].transport.takeCiphertext()
        swap(&loop.context.scratch.plaintext, &step.plaintext)
        if !loop.downstreams[downstream].transport.output.isEmpty { loop.flush(downstream: downstream) }
        guard loop.downstreams[downstream].isAlive else { return }
        guard step.hasRun, step.failure == nil else {
            return loop.rejectHandshake(downstream, step.failure?.code ?? "tls.overloaded")
        }
        continueHandshake(downstream)
    }

    /// Starts HTTP once the handshake is complete, else reads on.
    private mutating func continueHandshake(_ downstream: Handle<DownstreamConnection>) {
        guard loop.downstreams[downstream].transport.engine?.isEstablished == true else {
            return loop.downstreams[downstream].transport.isReadClosed
                ? loop.close(downstream: downstream)
                : loop.downstreams.markReady(downstream, &loop.context)
        }
        loop.context.counters.handshakeCompleted(
            loop.downstreams[downstream].transport.engine?.version ?? "",
            isResumed: loop.downstreams[downstream].transport.engine?.isResumed ?? false)
        loop.downstreams[downstream].phase = .head
        loop.downstreams.arm(downstream, at: loop.now &+ loop.context.snapshot.loopTimeouts.requestHead, &loop.context)
        if loop.downstreams[downstream].transport.engine?.applicationProtocol == .http2 {
            loop.downstreams.startHTTP2(downstream, &loop.context)
        }
        if !loop.context.scratch.plaintext.isEmpty {
            unsafe receivedPlaintext(downstream, loop.context.scratch.plaintext.bytes)
        }
        guard loop.downstreams[downstream].isAlive else { return }
        if loop.downstreams[downstream].transport.engine?.isPeerClosed == true {
            return loop.downstreamReadClosed(downstream)
        }
        loop.downstreams.markReady(downstream, &loop.context)
    }

    /// Decrypts bytes from a client.
    mutating func decrypt(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        let unsent = loop.downstreams[downstream].transport.output.count
        loop.context.scratch.plaintext.removeAll()
        let lent = unsafe loop.downstreams.all.address(of: downstream)
        let failure = unsafe lent.pointee.transport.decrypt(bytes, into: &loop.context.scratch.plaintext)
        if loop.downstreams[downstream].transport.output.count > unsent {
            loop.flush(downstream: downstream)
            guard loop.downstreams[downstream].isAlive else { return }
        }
        guard failure == nil else { return loop.abandon(downstream) }
        if !loop.context.scratch.plaintext.isEmpty {
            unsafe receivedPlaintext(downstream, loop.context.scratch.plaintext.bytes)
        }
        guard loop.downstreams[downstream].isAlive, loop.downstreams[downstream].transport.engine?.isPeerClosed == true
        else {
            return
        }
        loop.downstreams[downstream].transport.isReadClosed = true
        loop.downstreamReadClosed(downstream)
    }
}
