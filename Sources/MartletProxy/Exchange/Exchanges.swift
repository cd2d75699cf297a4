internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider

/// The requests in progress with their responses: what concerns an exchange together with its two connections, which
/// are lent for the call.
struct Exchanges: ~Copyable {
    /// The slots of the exchanges.
    var all = Slab<Exchange>()
    /// The tunnels that exchanges have become, or want to become.
    var tunnels = Slab<Tunnel>()
    /// Exchanges that ended in this iteration while the authenticator retained their tokens.
    var endedWithToken: [Handle<Exchange>] = []
    /// The cookies that responses will set.
    var cookies = ResponseCookies()

    subscript(handle: Handle<Exchange>) -> Exchange {
        @inline(__always)
        unsafeAddress { unsafe UnsafePointer(all.address(of: handle)) }
        @inline(__always)
        unsafeMutableAddress { unsafe all.address(of: handle) }
    }
}

/// Beginning, and what is asked about an exchange.
extension Exchanges {
    /// Allocates an exchange for the connection's next request.
    @inline(__always)
    mutating func allocateExchange(
        for downstream: Handle<DownstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) -> Handle<Exchange> {
        let exchange = all.allocate()
        self[exchange].begin(downstream: downstream, now: context.now)
        self[exchange].isStream = downstreams[downstream].isStream
        downstreams[downstream].exchange = exchange
        downstreams[downstream].phase = .exchange
        downstreams[downstream].reader.requests &+= 1
        downstreams[downstream].probe.begin()
        downstreams[downstream].timer.deadline = .max
        context.logs.requestIDs.next()
        unsafe self[exchange].record.texts.begin(
            requestID: context.logs.requestIDs.text.bytes, client: downstreams[downstream].origin.address.text)
        return exchange
    }

    /// Begins an exchange for a head that could not be parsed; only its rejection is logged.
    mutating func beginUnparsed(
        _ downstream: Handle<DownstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) -> Handle<Exchange> {
        let exchange = allocateExchange(for: downstream, &downstreams, &context)
        self[exchange].request.method = .other
        self[exchange].request.isHTTP10 = false
        self[exchange].request.keepsAlive = false
        self[exchange].request.expectsContinue = false
        self[exchange].body.framing = .none
        return exchange
    }

    /// Releases the tokens of exchanges that have ended.
    @inline(__always)
    mutating func releaseTokens(_ authenticator: inout Authenticator) {
        guard !endedWithToken.isEmpty else { return }
        for exchange in endedWithToken { authenticator.releaseToken(of: ExchangeID(exchange)) }
        endedWithToken.removeAll(keepingCapacity: true)
    }

    /// Requests in progress are logged with the provider that verified them.
    mutating func renumberProviders(_ next: Snapshot, _ context: inout LoopContext) {
        let indices = context.snapshot.providers.map { old in next.providers.firstIndex { $0.name == old.name } ?? -1 }
        for index in 0..<all.end {
            guard let exchange = all.handle(at: index), self[exchange].credential.provider >= 0 else {
                continue
            }
            self[exchange].credential.provider =
                Int32(indices[Int(self[exchange].credential.provider)])
        }
    }

    /// Requests whose trailers are still to come keep the header rules that their heads were forwarded with.
    mutating func retainSnapshotForTrailers(_ former: Snapshot) {
        for index in 0..<all.end {
            guard let exchange = all.handle(at: index), self[exchange].responder == .upstream,
                !self[exchange].body.isComplete, self[exchange].tunnel.isNone
            else { continue }
            self[exchange].forwarding.headerRules.retain(former: former)
        }
    }

    mutating func requestDeadline(
        of exchange: Handle<Exchange>, _ downstreams: inout DownstreamConnections
    ) -> RequestDeadline {
        let downstream = self[exchange].downstream
        return RequestDeadline(
            isTunnel: isTunnel(exchange),
            isProbePending: downstreams[downstream].probe.isPending,
            isComplete: self[exchange].body.isComplete,
            isLocal: self[exchange].responder == .local,
            hasResponseStarted: self[exchange].response.hasStarted,
            awaitsContinue: self[exchange].awaitsContinue,
            isPaused: downstreams[downstream].isPaused,
            isCall: self[exchange].request.isGRPC && !self[exchange].upstream.isNone)
    }

    /// The same for the trailers of a stream, given as lines.
    mutating func collectResponseTrailers(
        _ lines: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>, _ context: inout LoopContext
    ) {
        guard !exchange.isNone else { return }
        var index = 0
        while let field = unsafe TrailerLines.next(lines.span, from: &index) {
            unsafe self[exchange].collectResponseTrailer(field, lines, &context)
        }
    }

    /// Whether a request is the only one of an HTTP/1.0 connection, which ends with its client.
    func isLast(_ exchange: Handle<Exchange>) -> Bool {
        !exchange.isNone && self[exchange].request.isHTTP10 && !self[exchange].request.keepsAlive
    }

    /// Sends the pending bytes, a complete head, as HEADERS frames on a stream; on HTTP/1 it is sent with what follows.
    mutating func sendStreamHead(
        _ exchange: Handle<Exchange>, ends: Bool, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) {
        guard self[exchange].isStream else { return }
        let stream = self[exchange].downstream
        let connection = downstreams[stream].stream.connection
        unsafe downstreams[connection].streams?.session.submitHead(
            downstreams[stream].stream.id, context.scratch.pending.take(exchange), ends: ends)
        if ends { self[exchange].response.hasEndedStream = true }
        downstreams.markDirty(connection, &context)
    }

    /// Drops the upstream connection of an exchange that ends without a complete response; it cannot be reused.
    ///
    /// A connection of its own is reset: one that is closed keeps its port for a minute, and clients that leave could
    /// take every port towards an endpoint.
    mutating func dropUpstream(
        of exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        self[exchange].local.task?.cancel()
        self[exchange].local.task = nil
        let upstream = self[exchange].upstream
        guard !upstream.isNone else { return }
        self[exchange].upstream = .none
        self[exchange].forwarding.stopCarrying()
        upstreams.directory.ended(upstreams[upstream].endpoint)
        if upstreams[upstream].kind == .http1, !isTunnel(exchange) {
            Socket.resetOnClose(upstreams[upstream].transport.fd)
        }
        upstreams.close(upstream, &context)
    }
}

extension Exchange {
    /// The client's address: 16 bytes, or none for a Unix socket.
    mutating func clientAddress(_ downstreams: inout DownstreamConnections) -> [UInt8] {
        let forwarded = record.forwardedNetwork
        let address = forwarded.isEmpty ? downstreams[downstream].origin.address.bytes : forwarded
        return address.contains { $0 != 0 } ? address : []
    }

    /// The client's network, as throttles count it: that of the peer, or of the client that trusted proxies name.
    mutating func clientNetwork(_ downstreams: inout DownstreamConnections) -> ClientNetwork? {
        ClientNetwork(address: clientAddress(&downstreams))
    }

    /// What writes the heads of an exchange's response.
    @inline(__always)
    mutating func headWriter(_ downstreams: inout DownstreamConnections) -> ResponseHeadWriter {
        ResponseHeadWriter(
            isHTTP10: request.isHTTP10, isStream: isStream,
            isChunked: response.isChunked, closes: response.closesDownstream,
            strictTransportSeconds: downstreams[downstream].origin.rules.strictTransportSeconds)
    }

    mutating func endCredential(isRevoked: Bool, _ context: inout LoopContext) {
        credential.revocationID = 0
        credential.end = .max
        termination.credentialEnded(
            isRevoked: isRevoked, grace: credential.expiryGrace, at: context.now)
    }
}

extension Tunnel: SlabElement {}
