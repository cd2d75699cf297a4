private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// TLS between a downstream socket and its HTTP.
extension EventLoop {
    // MARK: TLS

    /// Queues events of a connection whose handshake is in progress.
    mutating func queueHandshakeEvents(_ token: EventToken, _ readiness: Readiness) {
        let isQueued = downstreams[token.index].queuedEvents != []
        downstreams[token.index].queuedEvents.formUnion(readiness)
        if !isQueued { handshakeQueue.append(.events, of: token, from: network(of: token)) }
    }

    /// Continues as many handshakes as one iteration of the loop may.
    mutating func advanceHandshakes() {
        var done = 0
        while let (token, work) = handshakeQueue.next(after: done) {
            // Entries of closed connections count too: releasing an engine is not free.
            done += 1
            guard downstreams.contains(token.index, token.generation) else { continue }
            switch work {
            case .finished(let step): handshakeStepFinished(token.index, step)
            case .events:
                let readiness = downstreams[token.index].queuedEvents
                downstreams[token.index].queuedEvents = []
                downstreamIsReady(token, readiness)
            }
        }
    }

    /// The network of a client that is still connected; `nil` where its address does not tell.
    func network(of token: EventToken) -> ClientNetwork? {
        guard downstreams.contains(token.index, token.generation) else { return nil }
        return ClientNetwork(address: downstreams[token.index].address.bytes)
    }

    /// Handles bytes of a handshake.
    ///
    /// The server's first flight costs a signature, which would hold up the loop's other connections: a thread computes
    /// it, the rest of the handshake stays on the loop.
    mutating func advanceHandshake(_ downstream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        if downstreams[downstream].engine == nil {
            guard let context = downstreams[downstream].tlsContext.take() else { return close(downstream: downstream) }
            do throws(TLSError) {
                downstreams[downstream].engine = try context.makeEngine()
            } catch {
                return rejectHandshake(downstream, error.code)
            }
        }
        if unsafe downstreams[downstream].engine?.bufferClientHello(bytes) == true {
            return continueHandshake(downstream)
        }
        let isCheap = downstreams[downstream].hasSentServerHello && downstreams[downstream].engine?.version == "TLSv1.3"
        var lent: TLSEngine?
        swap(&lent, &downstreams[downstream].engine)
        guard let engine = lent else { return close(downstream: downstream) }
        let step = HandshakeStep(consume engine, input: unsafe Array(bytes))
        if isCheap {
            step.run()
            return handshakeStepFinished(downstream, step)
        }
        downstreams[downstream].isHandshakeOffloaded = true
        let generation = downstreams[downstream].generation
        let deadline = MonotonicTime(nanoseconds: downstreams[downstream].deadline)
        // Networks take turns: many handshakes of one network delay only that network.
        let owner = network(of: token(of: downstream))?.workOwner ?? .anonymous
        handshakePool.submit(until: deadline, for: owner) { [mailbox] rejection in
            if rejection == nil { step.run() }
            mailbox.post(.handshake(downstream: downstream, generation: generation, step))
        }
    }

    /// A step of a handshake has finished.
    mutating func handshakeStepFinished(_ downstream: Int32, _ step: HandshakeStep) {
        guard step.engine != nil else { return close(downstream: downstream) }
        swap(&downstreams[downstream].engine, &step.engine)
        downstreams[downstream].isHandshakeOffloaded = false
        downstreams[downstream].hasSentServerHello = true
        plaintext.removeAll()
        downstreams[downstream].engine?.dequeueCiphertext(into: &downstreams[downstream].output)
        swap(&plaintext, &step.plaintext)
        let generation = downstreams[downstream].generation
        if !downstreams[downstream].output.isEmpty { flush(downstream: downstream) }
        guard downstreams.contains(downstream, generation) else { return }
        guard step.hasRun, step.failure == nil else {
            return rejectHandshake(downstream, step.failure?.code ?? "tls.overloaded")
        }
        continueHandshake(downstream)
    }

    /// Starts HTTP once the handshake is complete, else reads on.
    private mutating func continueHandshake(_ downstream: Int32) {
        let generation = downstreams[downstream].generation
        guard downstreams[downstream].engine?.isEstablished == true else {
            return downstreams[downstream].isReadClosed
                ? close(downstream: downstream)
                : markReady(downstream: downstream)
        }
        counters.handshakeCompleted(
            downstreams[downstream].engine?.version ?? "",
            isResumed: downstreams[downstream].engine?.isResumed ?? false)
        downstreams[downstream].phase = .head
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.requestHead)
        if downstreams[downstream].engine?.applicationProtocol == .http2 { startHTTP2(downstream) }
        if !plaintext.isEmpty { unsafe receivedPlaintext(downstream, plaintext.bytes) }
        guard downstreams.contains(downstream, generation) else { return }
        if downstreams[downstream].engine?.isPeerClosed == true { return downstreamReadClosed(downstream) }
        markReady(downstream: downstream)
    }

    /// The handshake timed out.
    mutating func handshakeTimedOut(_ downstream: Int32) {
        rejectHandshake(downstream, "tls.handshake_timed_out")
    }

    private mutating func rejectHandshake(_ downstream: Int32, _ code: ErrorCode) {
        counters.handshakeFailed(code)
        if debug.isOn {
            debug.connection("TLS handshake failed", code, client: downstreams[downstream].address.text.description)
        }
        close(downstream: downstream)
    }

    /// Decrypts bytes from a client.
    mutating func decrypt(_ downstream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        let generation = downstreams[downstream].generation
        var opened = ByteBuffer()
        swap(&opened, &plaintext)
        opened.removeAll()
        let failure = unsafe EventLoop.decryptRecords(bytes, &downstreams[downstream].engine, into: &opened)
        swap(&opened, &plaintext)
        guard failure == nil else {
            // Send the alert that says why.
            downstreams[downstream].engine?.dequeueCiphertext(into: &downstreams[downstream].output)
            flush(downstream: downstream)
            return abandon(downstream)
        }
        // Replies of TLS itself, such as to a key update.
        if downstreams[downstream].engine?.hasCiphertext == true {
            downstreams[downstream].engine?.dequeueCiphertext(into: &downstreams[downstream].output)
            flush(downstream: downstream)
            guard downstreams.contains(downstream, generation) else { return }
        }
        if !plaintext.isEmpty { unsafe receivedPlaintext(downstream, plaintext.bytes) }
        guard downstreams.contains(downstream, generation), downstreams[downstream].engine?.isPeerClosed == true else {
            return
        }
        downstreams[downstream].isReadClosed = true
        downstreamReadClosed(downstream)
    }

    /// Decrypts TLS records.
    /// - Returns: why the connection failed, if it did.
    static func decryptRecords(
        _ bytes: UnsafeBufferPointer<UInt8>, _ engine: inout TLSEngine?, into plaintext: inout ByteBuffer
    ) -> TLSError? {
        do throws(TLSError) {
            try unsafe engine?.receive(bytes, plaintext: &plaintext)
            return nil
        } catch {
            return error
        }
    }

    /// Encrypts bytes for a client and sends them; buffers what the kernel does not accept.
    mutating func encrypt(_ bytes: UnsafeBufferPointer<UInt8>, to downstream: Int32) {
        do throws(TLSError) {
            try unsafe downstreams[downstream].engine?.send(bytes)
        } catch {
            return abandon(downstream)
        }
        downstreams[downstream].engine?.dequeueCiphertext(into: &downstreams[downstream].output)
        let unsent = unsafe downstreams[downstream].output.bytes
        let sent = unsafe CLinux.send(downstreams[downstream].fd, unsent.baseAddress, unsent.count, Int32(MSG_NOSIGNAL))
        if sent < 0 {
            let reason = martlet_errno()
            guard reason == EAGAIN || reason == EINTR else { return abandon(downstream) }
        }
        downstreams[downstream].lastWriteAt = now
        downstreams[downstream].output.consume(max(sent, 0))
        if downstreams[downstream].output.isEmpty {
            downstreams[downstream].output.release()
        } else {
            applyBackPressure(downstream)
        }
    }

    /// Sends close_notify, so that the end is not taken for a truncation (RFC 8446 §6.1).
    mutating func sendCloseNotify(_ downstream: Int32) {
        guard downstreams[downstream].engine != nil, downstreams[downstream].output.isEmpty else { return }
        downstreams[downstream].engine?.close()
        downstreams[downstream].engine?.dequeueCiphertext(into: &downstreams[downstream].output)
        let bytes = unsafe downstreams[downstream].output.bytes
        _ = unsafe CLinux.send(downstreams[downstream].fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        downstreams[downstream].output.release()
    }
}
