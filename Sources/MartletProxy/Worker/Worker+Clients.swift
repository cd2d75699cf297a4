private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// Downstream: accepting, reading and feeding the codec.
extension Worker {
    /// Most connections taken from one listener before others have their turn.
    private static let acceptBatch = 64
    /// Most reads of one connection before others have their turn.
    private static let readBatch = 16
    /// How long, and how much, is read from a client that was already answered and closed.
    private static let lingerTime: Int64 = 2_000_000_000
    private static let lingerBytes = 1024 * 1024

    // MARK: Accepting

    /// Takes connections off a listener's queue.
    mutating func accept(_ id: Int32) {
        guard let place = listeners.firstIndex(where: { $0.id == id }) else { return }
        for _ in 0..<Worker.acceptBatch {
            guard let (fd, peer) = Socket.accept(listeners[place].fd) else {
                if martlet_errno() == EMFILE || martlet_errno() == ENFILE { shedOne(listeners[place]) }
                return
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
        let admission = connections.enter(isUncounted ? nil : bytes, limits: snapshot.limits)
        guard admission != .refused else {
            counters.refused &+= 1
            turnAway(fd, listener.rules)
            return
        }
        let address = ClientAddress(
            bytes: bytes, text: peer.isUnix ? AddressText("unix".utf8) : AddressText(peer.addressUTF8),
            isTrusted: peer.isUnix ? false : snapshot.trustedProxies.contains { $0.contains(bytes) }, port: peer.port,
            isUnix: peer.isUnix)
        let client = clients.take()
        clients[client].open(
            fd: fd, kind: .http1, rules: listener.rules, handler: listener.handler, address: address,
            maximumHeadBytes: snapshot.limits.headerBytes)
        clients[client].listener = listener.id
        clients[client].security = listener.tls
        clients[client].admission = admission
        let token = EventToken(.client, index: client, generation: clients[client].generation)
        do {
            try poller.add(fd, .connection, token: token.raw)
        } catch {
            close(client: client)
            return
        }
        counters.accepted &+= 1
        if listener.rules.takesProxyHeader { return awaitProxyHeader(client) }
        beginWire(client)
    }

    /// The connection's own bytes begin: a TLS handshake, or a request.
    mutating func beginWire(_ client: Int32) {
        guard clients[client].rules.isSecure else {
            clients[client].phase = .head
            return arm(client: client, at: now &+ snapshot.patience.requestHead)
        }
        clients[client].phase = .handshake
        arm(client: client, at: now &+ snapshot.patience.handshake)
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
        _ = CLinux.close(fd)
    }

    // MARK: Events

    /// Something happened on a client's socket.
    mutating func clientEvent(_ token: EventToken, _ readiness: Readiness) {
        let client = token.index
        guard clients.holds(client, token.generation) else { return }
        // A tunnel whose one direction was ended hangs up with the other: what came last is still to be read.
        if readiness.has(isTunnel(clients[client].exchange) ? .failed : .broken) { return abandon(client) }
        if readiness.has(.writable), clients[client].exchange >= 0 || !clients[client].output.isEmpty {
            clients[client].output.isEmpty ? goOnSplicing(toClient: client) : flush(client: client)
            guard clients.holds(client, token.generation) else { return }
        }
        if readiness.has(.readClosed) { clients[client].hasEnded = true }
        if readiness.has(.input) { readClient(client) }
    }

    /// Uses what was received before and reads on.
    mutating func continueClient(_ client: Int32) {
        let generation = clients[client].generation
        if !clients[client].input.isEmpty { useInput(client) }
        guard clients.holds(client, generation) else { return }
        clients[client].isStream ? useStreamEnd(client) : readClient(client)
    }

    /// Whether bytes from the client are of use now.
    private func wantsInput(_ client: Int32) -> Bool {
        switch clients[client].phase {
        case .head: return acceptsHead(client)
        case .lingering, .proxyHeader: return true
        case .handshake: return !clients[client].isHandshakeOut
        // A peer that takes no frames is not asked for more of its own.
        case .frames: return acceptsHead(client)
        case .authenticating: return false
        case .exchange:
            return !clients[client].isPaused && clients[client].pipe < 0
                && !exchanges[clients[client].exchange].isRequestComplete
        }
    }

    /// Whether another request may begin: not behind the last answer, nor while too many answers wait to be taken.
    private func acceptsHead(_ client: Int32) -> Bool {
        !clients[client].closesAfterFlush && clients[client].output.count <= Worker.highWater
    }

    private mutating func readClient(_ client: Int32) {
        let generation = clients[client].generation
        for _ in 0..<Worker.readBatch {
            guard wantsInput(client) else {
                clients[client].mayHaveMore = true
                if clients[client].hasEnded { peerEnded(client) }
                return
            }
            if clients[client].isBulk, spliceBody(client) { return }
            let count = receiveBuffer.receive(from: clients[client].fd)
            if count > 0 {
                clients[client].isBulk = count == ReceiveBuffer.size
                unsafe arrived(client, receiveBuffer.bytes(count))
                guard clients.holds(client, generation) else { return }
                if count < ReceiveBuffer.size, !clients[client].hasEnded {
                    clients[client].mayHaveMore = false
                    return
                }
            } else if count == 0 {
                clients[client].hasEnded = true
                return inputEnded(client)
            } else {
                clients[client].mayHaveMore = false
                let reason = martlet_errno()
                if reason != EAGAIN && reason != EINTR { abandon(client) }
                return
            }
        }
        markReady(client: client)
    }

    /// Bytes have come off the wire.
    mutating func arrived(_ client: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        switch clients[client].phase {
        case .proxyHeader: unsafe useProxyHeader(client, bytes)
        case .handshake: unsafe shakeHands(client, bytes)
        case .lingering: linger(client, received: bytes.count)
        default: unsafe clients[client].rules.isSecure ? decrypt(client, bytes) : received(client, bytes)
        }
    }

    /// Bytes of HTTP have come.
    mutating func received(_ client: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        if clients[client].kind == .http2 { return unsafe useFrames(bytes, from: client) }
        guard clients[client].input.isEmpty else {
            unsafe clients[client].input.append(bytes)
            return useInput(client)
        }
        let generation = clients[client].generation
        let used = unsafe use(bytes, from: client)
        guard clients.holds(client, generation), used < bytes.count else { return }
        unsafe clients[client].input.append(unsafe UnsafeBufferPointer(rebasing: bytes[used...]))
    }

    mutating func useInput(_ client: Int32) {
        let generation = clients[client].generation
        let used = unsafe use(unsafe clients[client].input.bytes, from: client)
        guard clients.holds(client, generation) else { return }
        clients[client].input.consume(used)
        if clients[client].input.isEmpty { clients[client].input.release() }
    }

    // MARK: Codec

    /// Uses received bytes as far as the phase allows.
    /// - Returns: how many were used; the rest is kept for later.
    private mutating func use(_ bytes: UnsafeBufferPointer<UInt8>, from client: Int32) -> Int {
        let generation = clients[client].generation
        var offset = 0
        while offset < bytes.count {
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes[offset...])
            switch clients[client].phase {
            case .head:
                guard !clients[client].isAnswered else { return bytes.count }
                guard acceptsHead(client) else { return offset }
                if mayBecomeHTTP2(client) {
                    switch unsafe HTTP2Preface.compare(rest) {
                    case .other: break
                    case .incomplete:
                        awaitHead(client)
                        return offset
                    case .whole:
                        beginHTTP2(client)
                        unsafe useFrames(rest, from: client)
                        return bytes.count
                    }
                }
                guard let used = unsafe useHead(rest, from: client) else { return offset }
                offset &+= used
            case .exchange:
                let exchange = clients[client].exchange
                guard !exchanges[exchange].isRequestComplete else { return offset }
                let used = unsafe takeBody(rest, for: exchange)
                guard clients.holds(client, generation) else { return bytes.count }
                guard used > 0 else { return offset }
                offset &+= used
            case .authenticating: return offset
            case .proxyHeader, .handshake, .lingering, .frames: return bytes.count
            }
            guard clients.holds(client, generation) else { return bytes.count }
        }
        return offset
    }

    /// - Returns: how many bytes a complete head took; `nil` when it is not complete or has to stay.
    @inline(__always)
    private mutating func useHead(_ bytes: UnsafeBufferPointer<UInt8>, from client: Int32) -> Int? {
        var parser = clients[client].parser
        let outcome = unsafe parser.parse(bytes.span, into: &head)
        clients[client].parser = parser
        switch outcome {
        case .needMore:
            awaitHead(client)
            return nil
        case .complete(let count):
            clients[client].isReceivingHead = false
            let exchange = unsafe begin(client, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]))
            unsafe admit(exchange, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), judgement: nil)
            return clients[client].isAlive && clients[client].phase == .authenticating ? nil : count
        case .failure(let failure):
            let exchange = begin(client)
            refuse(exchange, .head(failure))
            return bytes.count
        }
    }

    /// Part of a head has come; the rest must follow in time.
    private mutating func awaitHead(_ client: Int32) {
        guard !clients[client].isReceivingHead else { return }
        clients[client].isReceivingHead = true
        arm(client: client, at: now &+ snapshot.patience.requestHead)
    }

    /// The verdict on a credential has come: the head that waited is taken up again.
    mutating func resume(_ client: Int32, with verdict: Verdict?) {
        let generation = clients[client].generation
        let bytes = unsafe clients[client].input.bytes
        var parser = clients[client].parser
        parser.reset()
        let outcome = unsafe parser.parse(bytes.span, into: &head)
        clients[client].phase = .exchange
        let exchange = clients[client].exchange
        // A reload may have lowered a limit that the head was within.
        if case .failure(let failure) = outcome { return refuse(exchange, .head(failure)) }
        guard case .complete(let count) = outcome else { return abandon(client) }
        unsafe admit(
            exchange, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), judgement: verdict.map(Judgement.init))
        guard clients.holds(client, generation), clients[client].phase != .authenticating else { return }
        clients[client].input.consume(count)
        let isInputLeft = !clients[client].input.isEmpty
        if !isInputLeft { clients[client].input.release() }
        // Where nothing else has come, there is nothing to read either: an event will say so.
        if isInputLeft || clients[client].mayHaveMore || clients[client].hasEnded || clients[client].isStream {
            continueClient(client)
        }
    }

    // MARK: Ends

    /// The client has sent its last byte.
    mutating func inputEnded(_ client: Int32) {
        switch clients[client].phase {
        case .proxyHeader, .handshake: close(client: client)
        case .frames: abandon(client)
        case .head: clients[client].output.isEmpty ? close(client: client) : closeAfterFlush(client)
        case .lingering: close(client: client)
        case .authenticating: peerEnded(client)
        case .exchange where isTunnel(clients[client].exchange): clientEnded(tunnelOf: clients[client].exchange)
        case .exchange:
            exchanges[clients[client].exchange].isRequestComplete ? peerEnded(client) : abandon(client)
        }
    }

    /// A client that half-closed still gets its answer; one that left does not need it.
    ///
    /// Which of the two it is shows when something is sent, so a waiting HTTP/1.1 client is sent what changes
    /// nothing: a 100 (Continue), which it must expect (RFC 9110 §15.2), or a leading zero of the next chunk's size
    /// (RFC 9112 §7.1).
    private mutating func peerEnded(_ client: Int32) {
        guard clients[client].phase == .exchange, !clients[client].hasProbed,
            exchanges[clients[client].exchange].isRequestComplete
        else { return }
        clients[client].hasProbed = true
        clients[client].awaitsProbe = true
        clients[client].deadlineAfterProbe = clients[client].deadline
        arm(client: client, at: now &+ 400_000_000)
    }

    /// Sends the probe of ``peerEnded(_:)``, unless what waits to be taken is probe enough.
    mutating func probe(_ client: Int32) {
        let exchange = clients[client].exchange
        guard clients[client].output.isEmpty, !hasAnswerInPipe(client) else {
            return arm(client: client, at: now &+ snapshot.patience.bodyIdle)
        }
        arm(client: client, at: clients[client].deadlineAfterProbe)
        guard exchange >= 0, !exchanges[exchange].isHTTP10 else { return }
        staging.removeAll()
        if !exchanges[exchange].hasResponseStarted {
            staging.append("HTTP/1.1 100 Continue\r\n\r\n")
        } else if exchanges[exchange].isResponseChunked {
            staging.append("0")
        }
        sendStaging(exchange)
    }

    /// Keeps reading what a refused client still sends, so that it sees the answer and not a reset.
    private mutating func linger(_ client: Int32, received: Int) {
        clients[client].lingerBudget -= received
        if clients[client].lingerBudget < 0 { close(client: client) }
    }

    /// Stops sending and begins to linger.
    mutating func beginLinger(_ client: Int32) {
        sayGoodbye(client)
        // The last bytes may wait in the kernel for the end: with unread ones behind them, closing would throw them away.
        _ = shutdown(clients[client].fd, Int32(SHUT_WR))
        guard !clients[client].hasEnded else { return close(client: client) }
        clients[client].phase = .lingering
        clients[client].closesAfterFlush = false
        clients[client].lingerBudget = Worker.lingerBytes
        clients[client].input.release()
        arm(client: client, at: now &+ Worker.lingerTime)
        markReady(client: client)
    }

    /// Closes a client's connection and forgets it.
    mutating func close(client: Int32) {
        guard clients[client].isAlive else { return }
        if clients[client].kind == .http2 { abandonStreams(of: client) }
        dropPipe(ofClient: client)
        if clients[client].isStream {
            forgetStream(client)
        } else {
            _ = CLinux.close(clients[client].fd)
            connections.leave(clients[client].peerBytes, clients[client].admission)
        }
        clients[client].close()
        clients.give(client)
    }

    /// The client is gone: its exchange ends here and upstream.
    mutating func abandon(_ client: Int32) {
        guard clients[client].isAlive else { return }
        let exchange = clients[client].exchange
        if exchange >= 0 {
            dropLink(of: exchange)
            if exchanges[exchange].status == 0 { exchanges[exchange].status = 499 }
            exchanges[exchange].reason = counters.reason("request.client_left")
            finish(exchange)
        }
        if clients[client].isStream { resetStream(client, .cancel) }
        close(client: client)
    }

    /// A client's deadline has passed.
    mutating func clientTimedOut(_ client: Int32) {
        switch clients[client].phase {
        case .lingering, .proxyHeader: close(client: client)
        case .handshake: handshakeTimedOut(client)
        case .frames: framesTimedOut(client)
        case .head:
            if clients[client].isStream { return takenTooSlowly(client) }
            guard clients[client].isReceivingHead else { return close(client: client) }
            clients[client].isReceivingHead = false
            refuse(begin(client), .requestTimeout)
        case .authenticating: resume(client, with: .failure(.unavailable("auth.timed_out")))
        case .exchange: exchangeTimedOut(clients[client].exchange)
        }
    }
}
