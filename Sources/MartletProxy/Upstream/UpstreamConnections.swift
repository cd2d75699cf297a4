private import CLinux
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletResponder

/// The connections to endpoints, and the streams of those that use HTTP/2: opening and closing them, the idle ones of
/// each endpoint, and their deadlines.
///
/// It knows nothing of the requests on them: what concerns both is in ``Exchanges``.
struct UpstreamConnections: ~Copyable {
    /// Streams that may wait for a connection to be established.
    static let waitingLimit = 100

    /// The slots of the connections and streams.
    var all = Slab<UpstreamConnection>()
    /// Decides which endpoint gets a request.
    var directory = UpstreamDirectory()
    /// Decides whether another connection may be opened.
    var descriptors = LoopDescriptors(nil)

    subscript(handle: Handle<UpstreamConnection>) -> UpstreamConnection {
        @inline(__always)
        unsafeAddress { unsafe UnsafePointer(all.address(of: handle)) }
        @inline(__always)
        unsafeMutableAddress { unsafe all.address(of: handle) }
    }
}

/// Opening, sending, pooling and closing.
extension UpstreamConnections {
    /// Sets the deadline of an upstream connection.
    mutating func arm(_ upstream: Handle<UpstreamConnection>, at deadline: Int64, _ context: inout LoopContext) {
        guard let tick = self[upstream].timer.set(deadline, earliest: context.schedule.nextTick) else { return }
        context.schedule.enter(EventToken(upstream: upstream), at: tick)
    }

    /// Adds an upstream connection to the list of those to resume.
    mutating func markReady(_ upstream: Handle<UpstreamConnection>, _ context: inout LoopContext) {
        guard !self[upstream].isReady else { return }
        self[upstream].isReady = true
        context.schedule.ready.append(EventToken(upstream: upstream))
    }

    /// Schedules the connection's frames to be written at the end of the iteration.
    mutating func markDirty(_ upstream: Handle<UpstreamConnection>, _ context: inout LoopContext) {
        guard !self[upstream].isDirty else { return }
        self[upstream].isDirty = true
        context.schedule.dirty.append(EventToken(upstream: upstream))
    }

    /// Starts connecting to an endpoint.
    /// - Parameter charge: the descriptor that was taken for it.
    mutating func connect(
        to endpoint: EndpointIndex, _ kind: UpstreamKind, _ charge: DescriptorCharge,
        _ context: inout LoopContext
    ) -> Result<Handle<UpstreamConnection>, Failure> {
        var charge = charge
        guard let address = directory.nextAddress(of: endpoint) else {
            descriptors.release(&charge)
            return .failure(.upstreamUnavailable("upstream.name_not_resolved"))
        }
        let (fd, pending): (Int32, Bool)
        do {
            (fd, pending) = try Socket.connect(to: address)
        } catch {
            descriptors.release(&charge)
            if error.isPortShortage {
                context.debug.warnings.noLocalPort(to: address.description, at: context.now)
                return .failure(.noLocalPort)
            }
            if error.isShortage { return .failure(.noDescriptor) }
            directory.failed(endpoint, refused: true, now: context.now)
            return .failure(.upstreamUnavailable("upstream.refused"))
        }
        let transport = directory.endpoints[Int(endpoint)].transport
        let upstream = all.allocate()
        if directory.isCounted(endpoint) { count(upstream, endpoint) }
        // A preamble before the first request waits for the event that reports the connection.
        let isBare = !transport.isSecure && !transport.sendsProxyHeader && kind == .http1
        self[upstream].open(fd: fd, kind: kind, endpoint: endpoint, connected: !pending && isBare)
        self[upstream].transport.isSecure = transport.isSecure
        self[upstream].descriptor = charge
        let token = EventToken(upstream: upstream)
        do {
            try context.poller.add(fd, .connection, token: token.raw)
        } catch {
            close(upstream, &context)
            return .failure(.noDescriptor)
        }
        return .success(upstream)
    }

    /// Whether a preamble precedes the first request: a PROXY protocol header or a TLS handshake.
    mutating func needsPreamble(_ upstream: Handle<UpstreamConnection>) -> Bool {
        self[upstream].transport.isSecure
            || directory.endpoints[Int(self[upstream].endpoint)].transport.sendsProxyHeader
    }

    /// Bytes that the upstream has still to accept.
    mutating func unsent(_ upstream: Handle<UpstreamConnection>) -> Int {
        if self[upstream].kind == .stream {
            return self[upstream].output.count
                &+ (session(of: upstream)?.unsent(self[upstream].stream.id) ?? 0)
        }
        return self[upstream].output.count &+ self[upstream].transport.output.count
    }

    /// Sends what is ready for the socket.
    mutating func flushTransport(_ upstream: Handle<UpstreamConnection>, _ context: inout LoopContext) {
        if self[upstream].transport.flush(now: context.now) == .failed { transportFailed(upstream, &context) }
    }

    /// Sending failed; what the upstream has sent before is read first.
    mutating func transportFailed(_ upstream: Handle<UpstreamConnection>, _ context: inout LoopContext) {
        self[upstream].transport.output.removeAll()
        self[upstream].transport.isReadClosed = true
        markReady(upstream, &context)
    }

    /// Closes an upstream connection and frees its slot.
    mutating func close(_ upstream: Handle<UpstreamConnection>, _ context: inout LoopContext) {
        guard self[upstream].isAlive else { return }
        if self[upstream].phase == .idle {
            directory.removeIdle(upstream, of: self[upstream].endpoint)
        }
        switch self[upstream].kind {
        case .stream: leaveConnection(upstream, &context)
        case .http2: removeFromEndpoint(upstream)
        case .http1: break
        }
        dropPipe(of: upstream, &context)
        self[upstream].counter.leave()
        let lent = unsafe all.address(of: upstream)
        unsafe descriptors.release(&lent.pointee.descriptor)
        if self[upstream].transport.fd >= 0 { _ = CLinux.close(self[upstream].transport.fd) }
        self[upstream].close()
        all.free(upstream)
    }

    /// Counts a connection among those of its upstream.
    @inline(never)
    private mutating func count(_ upstream: Handle<UpstreamConnection>, _ endpoint: EndpointIndex) {
        let cluster = Int(directory.endpoints[Int(endpoint)].cluster)
        guard let counters = directory.clusters[cluster].upstream.counters else { return }
        _ = self[upstream].counter.enter(counters.connections)
    }

    /// Releases the pipe of a response body, with its remaining bytes.
    mutating func dropPipe(of upstream: Handle<UpstreamConnection>, _ context: inout LoopContext) {
        guard !self[upstream].pipe.isNone else { return }
        context.pipes.release(self[upstream].pipe)
        self[upstream].pipe = .none
    }
}
