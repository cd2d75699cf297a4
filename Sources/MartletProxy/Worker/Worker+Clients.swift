private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// Downstream: reading and feeding the codec.
extension Worker {
    /// Most reads of one connection before others have their turn.
    private static let readBatch = 16
    /// How long, and how much, is read from a client that was already answered and closed.
    private static let lingerTime: Int64 = 2_000_000_000
    private static let lingerBytes = 1024 * 1024

    /// The connection's own bytes begin: a TLS handshake, or a request.
    mutating func beginWire(_ client: Int32) {
        guard clients[client].rules.isSecure else {
            clients[client].phase = .head
            return arm(client: client, at: now &+ snapshot.patience.requestHead)
        }
        clients[client].phase = .handshake
        arm(client: client, at: now &+ snapshot.patience.handshake)
    }

    // MARK: Events

    /// Something happened on a client's socket.
    mutating func clientEvent(_ token: EventToken, _ readiness: Readiness) {
        guard clients.holds(token.index, token.generation) else { return }
        if clients[token.index].phase == .handshake { return wait(token, readiness) }
        clientIsReady(token, readiness)
    }

    /// Goes on with a client as far as its socket lets it.
    mutating func clientIsReady(_ token: EventToken, _ readiness: Readiness) {
        let client = token.index
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

    mutating func readClient(_ client: Int32) {
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
            unsafe exchanges[exchange].texts.set(unreadable: bytes)
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
        watch(client)
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
            if clients[client].requests == 1 { singleUse.note() }
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
