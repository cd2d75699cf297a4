private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// What lies between a client's socket and its HTTP: the PROXY protocol and TLS.
extension Worker {
    // MARK: TLS

    /// Events of a connection whose handshake is under way wait for its turn among those of its kind.
    mutating func wait(_ token: EventToken, _ readiness: Readiness) {
        let isWaiting = clients[token.index].waitingEvents != []
        clients[token.index].waitingEvents.formUnion(readiness)
        if !isWaiting { handshaking.append(.events, of: token, from: network(of: token)) }
    }

    /// Goes on with handshakes, as many as a turn of the loop may take.
    mutating func goOnShakingHands() {
        var done = 0
        while let (token, work) = handshaking.next(after: done) {
            guard clients.holds(token.index, token.generation) else { continue }
            done += 1
            switch work {
            case .finished(let step): handshakeWent(token.index, step)
            case .events:
                let readiness = clients[token.index].waitingEvents
                clients[token.index].waitingEvents = []
                clientIsReady(token, readiness)
            }
        }
    }

    /// Where a client is, if it is still there and its address says so.
    func network(of token: EventToken) -> ClientNetwork? {
        guard clients.holds(token.index, token.generation) else { return nil }
        return ClientNetwork(address: clients[token.index].address.bytes)
    }

    /// Bytes of a handshake have come.
    ///
    /// The first answer to a client costs a signature, which would hold up the loop's other connections: a thread
    /// computes it, and the rest of the handshake stays here.
    mutating func shakeHands(_ client: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        if clients[client].engine == nil {
            guard let context = clients[client].security.take() else { return close(client: client) }
            do throws(TLSError) {
                clients[client].engine = try context.makeEngine()
            } catch {
                return refuseHandshake(client, error.code)
            }
        }
        if unsafe clients[client].engine?.keep(bytes) == true { return goOnShakingHands(client) }
        let isCheap = clients[client].isHandshakeAnswered && clients[client].engine?.version == "TLSv1.3"
        var lent: TLSEngine?
        swap(&lent, &clients[client].engine)
        guard let engine = lent else { return close(client: client) }
        let step = HandshakeStep(consume engine, input: unsafe Array(bytes))
        if isCheap {
            step.run()
            return handshakeWent(client, step)
        }
        clients[client].isHandshakeOut = true
        let generation = clients[client].generation
        let deadline = MonotonicTime(nanoseconds: clients[client].deadline)
        // Clients take turns by their networks: many handshakes of one make only that one wait.
        let owner = network(of: token(of: client))?.workOwner ?? .anybody
        handshakes.submit(until: deadline, for: owner) { [mailbox] refusal in
            if refusal == nil { step.run() }
            mailbox.post(.handshake(client: client, generation: generation, step))
        }
    }

    /// A step of a handshake is done.
    mutating func handshakeWent(_ client: Int32, _ step: HandshakeStep) {
        guard step.engine != nil else { return close(client: client) }
        swap(&clients[client].engine, &step.engine)
        clients[client].isHandshakeOut = false
        clients[client].isHandshakeAnswered = true
        plain.removeAll()
        clients[client].engine?.takeCiphertext(into: &clients[client].output)
        swap(&plain, &step.plaintext)
        let generation = clients[client].generation
        if !clients[client].output.isEmpty { flush(client: client) }
        guard clients.holds(client, generation) else { return }
        guard step.hasRun, step.failure == nil else {
            return refuseHandshake(client, step.failure?.code ?? "tls.overloaded")
        }
        goOnShakingHands(client)
    }

    /// Goes over to HTTP once the handshake is through, else reads on.
    private mutating func goOnShakingHands(_ client: Int32) {
        let generation = clients[client].generation
        guard clients[client].engine?.isEstablished == true else {
            return clients[client].hasEnded ? close(client: client) : markReady(client: client)
        }
        counters.handshakeDone(
            clients[client].engine?.version ?? "", isResumed: clients[client].engine?.isResumed ?? false)
        clients[client].phase = .head
        arm(client: client, at: now &+ snapshot.patience.requestHead)
        if clients[client].engine?.applicationProtocol == .http2 { beginHTTP2(client) }
        if !plain.isEmpty { unsafe received(client, plain.bytes) }
        guard clients.holds(client, generation) else { return }
        if clients[client].engine?.isPeerClosed == true { return inputEnded(client) }
        markReady(client: client)
    }

    /// A client did not finish its handshake in time.
    mutating func handshakeTimedOut(_ client: Int32) {
        refuseHandshake(client, "tls.handshake_timed_out")
    }

    private mutating func refuseHandshake(_ client: Int32, _ code: ErrorCode) {
        counters.handshakeFailed(code)
        if debug.isOn {
            debug.connection("a TLS handshake failed", code, client: clients[client].address.text.description)
        }
        close(client: client)
    }

    /// Decrypts what came from a client.
    mutating func decrypt(_ client: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        let generation = clients[client].generation
        var opened = ByteBuffer()
        swap(&opened, &plain)
        opened.removeAll()
        let failure = unsafe Worker.open(bytes, &clients[client].engine, into: &opened)
        swap(&opened, &plain)
        guard failure == nil else {
            // The alert that says why.
            clients[client].engine?.takeCiphertext(into: &clients[client].output)
            flush(client: client)
            return abandon(client)
        }
        // Answers to what TLS itself asks, such as a change of keys.
        if clients[client].engine?.hasCiphertext == true {
            clients[client].engine?.takeCiphertext(into: &clients[client].output)
            flush(client: client)
            guard clients.holds(client, generation) else { return }
        }
        if !plain.isEmpty { unsafe received(client, plain.bytes) }
        guard clients.holds(client, generation), clients[client].engine?.isPeerClosed == true else { return }
        clients[client].hasEnded = true
        inputEnded(client)
    }

    /// Decrypts bytes off the wire.
    /// - Returns: why the connection cannot go on.
    static func open(
        _ bytes: UnsafeBufferPointer<UInt8>, _ engine: inout TLSEngine?, into plain: inout ByteBuffer
    ) -> TLSError? {
        do throws(TLSError) {
            try unsafe engine?.receive(bytes, plaintext: &plain)
            return nil
        } catch {
            return error
        }
    }

    /// Encrypts bytes for a client and sends them, or keeps what the kernel does not take.
    mutating func encrypt(_ bytes: UnsafeBufferPointer<UInt8>, to client: Int32) {
        do throws(TLSError) {
            try unsafe clients[client].engine?.send(bytes)
        } catch {
            return abandon(client)
        }
        clients[client].engine?.takeCiphertext(into: &clients[client].output)
        let unsent = unsafe clients[client].output.bytes
        let sent = unsafe CLinux.send(clients[client].fd, unsent.baseAddress, unsent.count, Int32(MSG_NOSIGNAL))
        if sent < 0 {
            let reason = martlet_errno()
            guard reason == EAGAIN || reason == EINTR else { return abandon(client) }
        }
        clients[client].takenAt = now
        clients[client].output.consume(max(sent, 0))
        if clients[client].output.isEmpty { clients[client].output.release() } else { holdBack(client) }
    }

    /// Says that nothing more will be sent, so that the end is not taken for a cut (RFC 8446 §6.1).
    mutating func sayGoodbye(_ client: Int32) {
        guard clients[client].engine != nil, clients[client].output.isEmpty else { return }
        clients[client].engine?.close()
        clients[client].engine?.takeCiphertext(into: &clients[client].output)
        let bytes = unsafe clients[client].output.bytes
        _ = unsafe CLinux.send(clients[client].fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        clients[client].output.release()
    }
}

/// What a thread does for a TLS connection, and the connection's engine while it is away from its loop.
// @unchecked Sendable: it is handed from the loop to a thread and back through queues that order the accesses.
final class HandshakeStep: @unchecked Sendable {
    var engine: TLSEngine?
    var plaintext = ByteBuffer()
    private(set) var failure: TLSError?
    private(set) var hasRun = false
    private let input: [UInt8]

    init(_ engine: consuming TLSEngine, input: [UInt8]) {
        self.engine = consume engine
        self.input = input
    }

    /// Feeds the engine.
    func run() {
        hasRun = true
        do throws(TLSError) {
            try unsafe input.withUnsafeBufferPointer { bytes throws(TLSError) in
                try unsafe engine?.receive(bytes, plaintext: &plaintext)
            }
        } catch {
            failure = error
        }
    }
}
