internal import MartletCore
internal import MartletProvider
internal import MartletTLS

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
