internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// The connections of clients, and the streams of those that use HTTP/2: their deadlines, their registration with the
/// poller, and the listeners that they come from.
///
/// It knows nothing of the requests on them: what concerns both is in ``Exchanges``.
struct DownstreamConnections: ~Copyable {
    /// How long an idle connection is kept while draining, for a request in flight, in nanoseconds.
    static let drainIdleTimeout: Int64 = 250_000_000
    /// The same for a connection without a request so far: it probably has one in flight.
    static let drainFreshTimeout: Int64 = 1_000_000_000

    /// The slots of the connections and streams.
    var all = Slab<DownstreamConnection>()
    /// Decides which connections are admitted.
    var acceptor: Acceptor

    init(acceptor: consuming Acceptor) { self.acceptor = acceptor }

    subscript(handle: Handle<DownstreamConnection>) -> DownstreamConnection {
        @inline(__always)
        unsafeAddress { unsafe UnsafePointer(all.address(of: handle)) }
        @inline(__always)
        unsafeMutableAddress { unsafe all.address(of: handle) }
    }
}

/// Deadlines, turns and registration.
extension DownstreamConnections {
    /// Sets the deadline of a downstream connection.
    mutating func arm(_ downstream: Handle<DownstreamConnection>, at deadline: Int64, _ context: inout LoopContext) {
        guard let tick = self[downstream].timer.set(deadline, earliest: context.schedule.nextTick) else { return }
        context.schedule.enter(EventToken(downstream: downstream), at: tick)
    }

    /// Adds a downstream connection to the list of those to resume.
    mutating func markReady(_ downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) {
        guard !self[downstream].isReady else { return }
        self[downstream].isReady = true
        context.schedule.ready.append(EventToken(downstream: downstream))
    }

    /// Schedules the connection's frames to be written at the end of the iteration.
    mutating func markDirty(_ downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) {
        guard !self[downstream].isDirty else { return }
        self[downstream].isDirty = true
        context.schedule.dirty.append(EventToken(downstream: downstream))
    }

    /// Registers a downstream socket with the poller, if it is not yet.
    /// - Returns: whether it is registered.
    @discardableResult
    mutating func register(_ downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) -> Bool {
        if self[downstream].transport.isRegistered { return true }
        let token = EventToken(downstream: downstream)
        self[downstream].transport.isRegistered =
            (try? context.poller.add(self[downstream].transport.fd, .connection, token: token.raw)) != nil
        return self[downstream].transport.isRegistered
    }

    mutating func armWrite(_ downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) {
        // A failed registration is retried: see `registerOverdue`.
        register(downstream, &context)
        guard !self[downstream].probe.isPending, self[downstream].phase != .waiting else { return }
        arm(downstream, at: context.now &+ context.snapshot.loopTimeouts.bodyIdle, &context)
    }

    /// Part of a head was received; the rest must follow in time.
    mutating func awaitHead(_ downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) {
        guard !self[downstream].reader.isReceivingHead else { return }
        self[downstream].reader.isReceivingHead = true
        arm(downstream, at: context.now &+ context.snapshot.loopTimeouts.requestHead, &context)
    }

    /// Starts the idle timeout of a connection without a request.
    mutating func awaitRequest(_ downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) {
        awaitRequest(downstream, since: context.now, &context)
    }

    /// The same, counted from an earlier moment.
    mutating func awaitRequest(_ downstream: Handle<DownstreamConnection>, since: Int64, _ context: inout LoopContext) {
        arm(
            downstream,
            at: since
                &+ (context.isDraining ? DownstreamConnections.drainIdleTimeout : context.snapshot.loopTimeouts.idle),
            &context)
    }

    /// Starts the TLS handshake, or waits for a request in clear text.
    mutating func startTransport(_ downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) {
        guard self[downstream].origin.rules.isSecure else {
            self[downstream].phase = .head
            return arm(downstream, at: context.now &+ context.snapshot.loopTimeouts.requestHead, &context)
        }
        self[downstream].phase = .handshake
        arm(downstream, at: context.now &+ context.snapshot.loopTimeouts.handshake, &context)
    }

    /// Queues events of a connection whose handshake is in progress.
    mutating func queueHandshakeEvents(
        _ downstream: Handle<DownstreamConnection>, _ readiness: Readiness, _ context: inout LoopContext
    ) {
        let isQueued = self[downstream].handshake.queuedEvents != []
        self[downstream].handshake.queuedEvents.formUnion(readiness)
        if !isQueued { context.threads.handshakeQueue.append(.events, of: downstream, from: network(of: downstream)) }
    }

    /// Discards what the client of a connection that is closed for writing still sends.
    mutating func startLinger(_ downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) {
        self[downstream].phase = .lingering
        register(downstream, &context)
        self[downstream].ending.startLinger()
        self[downstream].reader.input.release()
        arm(downstream, at: context.now &+ ConnectionEnding.lingerTime, &context)
        markReady(downstream, &context)
    }

    mutating func isReading(_ downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) -> Bool {
        RequestDeadline.isReading(
            lastWriteAt: self[downstream].transport.lastWriteAt, now: context.now,
            timeout: context.snapshot.loopTimeouts.bodyIdle)
    }

    /// Whether another request may begin: not after the last response, nor while too much output is unsent.
    mutating func acceptsHead(_ downstream: Handle<DownstreamConnection>) -> Bool {
        !self[downstream].ending.closesAfterFlush
            && self[downstream].transport.output.count <= Watermark.high
    }

    /// Releases the pipe of a request body, with its remaining bytes.
    mutating func dropPipe(of downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) {
        guard !self[downstream].pipe.isNone else { return }
        context.pipes.release(self[downstream].pipe)
        self[downstream].pipe = .none
    }

    /// The network of a client that is still connected; `nil` where its address does not tell.
    mutating func network(of downstream: Handle<DownstreamConnection>) -> ClientNetwork? {
        guard all.contains(downstream) else { return nil }
        return ClientNetwork(address: self[downstream].origin.address.bytes)
    }

    /// The local address of a connection to a listener with its own handler.
    mutating func localAddress(of downstream: Handle<DownstreamConnection>) -> SocketEndpoint? {
        guard self[downstream].origin.handler != nil else { return nil }
        let connection = self[downstream].isStream ? self[downstream].stream.connection : downstream
        return Socket.localAddress(self[connection].transport.fd)
    }

    /// The certificate of the handshake; made once for each connection.
    mutating func handshakeCertificate(_ downstream: Handle<DownstreamConnection>) -> ClientCertificateBytes? {
        let connection = self[downstream].isStream ? self[downstream].stream.connection : downstream
        if let known = self[connection].handshake.clientCertificate { return known }
        guard let der = self[connection].transport.engine?.peerCertificate else { return nil }
        let certificate = ClientCertificateBytes(der: der)
        self[connection].handshake.clientCertificate = certificate
        return certificate
    }

    /// The client's certificate in DER, on a listener with a handler; it was verified in the handshake.
    mutating func clientCertificate(_ downstream: Handle<DownstreamConnection>) -> [UInt8]? {
        guard self[downstream].origin.handler != nil else { return nil }
        let connection = self[downstream].isStream ? self[downstream].stream.connection : downstream
        return self[connection].transport.engine?.peerCertificate
    }
}
