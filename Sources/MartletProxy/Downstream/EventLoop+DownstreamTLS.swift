internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// TLS between a downstream socket and its HTTP.
extension EventLoop {
    // MARK: TLS

    /// Queues events of a connection whose handshake is in progress.
    mutating func queueHandshakeEvents(_ downstream: Handle<DownstreamConnection>, _ readiness: Readiness) {
        let isQueued = downstreams[downstream].handshake.queuedEvents != []
        downstreams[downstream].handshake.queuedEvents.formUnion(readiness)
        if !isQueued { threads.handshakeQueue.append(.events, of: downstream, from: network(of: downstream)) }
    }

    /// Continues as many handshakes as one iteration of the loop may.
    mutating func advanceHandshakes() {
        var done = 0
        while let (downstream, work) = threads.handshakeQueue.next(after: done) {
            // Entries of closed connections count too: releasing an engine is not free.
            done += 1
            guard downstreams.contains(downstream) else { continue }
            switch work {
            case .finished(let step): handshakeStepFinished(downstream, step)
            case .events:
                let readiness = downstreams[downstream].handshake.queuedEvents
                downstreams[downstream].handshake.queuedEvents = []
                downstreamIsReady(downstream, readiness)
            }
        }
    }

    /// The network of a client that is still connected; `nil` where its address does not tell.
    func network(of downstream: Handle<DownstreamConnection>) -> ClientNetwork? {
        guard downstreams.contains(downstream) else { return nil }
        return ClientNetwork(address: downstreams[downstream].origin.address.bytes)
    }

    /// Handles bytes of a handshake.
    ///
    /// The server's first flight costs a signature, which would hold up the loop's other connections: a thread computes
    /// it, the rest of the handshake stays on the loop.
    mutating func advanceHandshake(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        if downstreams[downstream].transport.engine == nil {
            guard let context = downstreams[downstream].handshake.tlsContext.take() else {
                return close(downstream: downstream)
            }
            do throws(TLSError) {
                downstreams[downstream].transport.engine = try context.makeEngine()
            } catch {
                return rejectHandshake(downstream, error.code)
            }
        }
        if unsafe downstreams[downstream].transport.engine?.bufferClientHello(bytes) == true {
            return continueHandshake(downstream)
        }
        let isCheap =
            downstreams[downstream].handshake.hasSentServerHello
            && downstreams[downstream].transport.engine?.version == "TLSv1.3"
        var lent: TLSEngine?
        swap(&lent, &downstreams[downstream].transport.engine)
        guard let engine = lent else { return close(downstream: downstream) }
        let step = HandshakeStep(consume engine, input: unsafe Array(bytes))
        if isCheap {
            step.run()
            return handshakeStepFinished(downstream, step)
        }
        downstreams[downstream].handshake.isOffloaded = true
        let deadline = MonotonicTime(nanoseconds: downstreams[downstream].timer.deadline)
        // Networks take turns: many handshakes of one network delay only that network.
        let owner = network(of: downstream)?.workOwner ?? .anonymous
        threads.handshakePool.submit(until: deadline, for: owner) { [mailbox] rejection in
            if rejection == nil { step.run() }
            mailbox.post(.handshake(downstream: downstream, step))
        }
    }

    /// A step of a handshake has finished.
    mutating func handshakeStepFinished(_ downstream: Handle<DownstreamConnection>, _ step: HandshakeStep) {
        guard step.engine != nil else { return close(downstream: downstream) }
        swap(&downstreams[downstream].transport.engine, &step.engine)
        downstreams[downstream].handshake.isOffloaded = false
        downstreams[downstream].handshake.hasSentServerHello = true
        plaintext.removeAll()
        downstreams[downstream].transport.engine?.dequeueCiphertext(into: &downstreams[downstream].transport.output)
        swap(&plaintext, &step.plaintext)
        if !downstreams[downstream].transport.output.isEmpty { flush(downstream: downstream) }
        guard downstreams[downstream].isAlive else { return }
        guard step.hasRun, step.failure == nil else {
            return rejectHandshake(downstream, step.failure?.code ?? "tls.overloaded")
        }
        continueHandshake(downstream)
    }

    /// Starts HTTP once the handshake is complete, else reads on.
    private mutating func continueHandshake(_ downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].transport.engine?.isEstablished == true else {
            return downstreams[downstream].transport.isReadClosed
                ? close(downstream: downstream)
                : markReady(downstream: downstream)
        }
        counters.handshakeCompleted(
            downstreams[downstream].transport.engine?.version ?? "",
            isResumed: downstreams[downstream].transport.engine?.isResumed ?? false)
        downstreams[downstream].phase = .head
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.requestHead)
        if downstreams[downstream].transport.engine?.applicationProtocol == .http2 { startHTTP2(downstream) }
        if !plaintext.isEmpty { unsafe receivedPlaintext(downstream, plaintext.bytes) }
        guard downstreams[downstream].isAlive else { return }
        if downstreams[downstream].transport.engine?.isPeerClosed == true { return downstreamReadClosed(downstream) }
        markReady(downstream: downstream)
    }

    /// The handshake timed out.
    mutating func handshakeTimedOut(_ downstream: Handle<DownstreamConnection>) {
        rejectHandshake(downstream, "tls.handshake_timed_out")
    }

    private mutating func rejectHandshake(_ downstream: Handle<DownstreamConnection>, _ code: ErrorCode) {
        counters.handshakeFailed(code)
        if debug.isOn {
            debug.connection(
                "TLS handshake failed", code, client: downstreams[downstream].origin.address.text.description)
        }
        close(downstream: downstream)
    }

    /// Decrypts bytes from a client.
    mutating func decrypt(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        let unsent = downstreams[downstream].transport.output.count
        plaintext.removeAll()
        let lent = unsafe downstreams.address(of: downstream)
        let failure = unsafe lent.pointee.transport.decrypt(bytes, into: &plaintext)
        if downstreams[downstream].transport.output.count > unsent {
            flush(downstream: downstream)
            guard downstreams[downstream].isAlive else { return }
        }
        guard failure == nil else { return abandon(downstream) }
        if !plaintext.isEmpty { unsafe receivedPlaintext(downstream, plaintext.bytes) }
        guard downstreams[downstream].isAlive, downstreams[downstream].transport.engine?.isPeerClosed == true else {
            return
        }
        downstreams[downstream].transport.isReadClosed = true
        downstreamReadClosed(downstream)
    }
}
