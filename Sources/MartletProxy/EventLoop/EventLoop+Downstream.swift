private import CLinux
internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletIO
internal import MartletResponder

/// Reads downstream connections and feeds the codec.
extension EventLoop {
    /// Most reads of one connection before others have their turn.
    private static let readBatch = 16

    /// When so many exchanges have ended in an iteration, their slots are freed before the next head: a client that
    /// pipelines its requests would otherwise use one for each.
    private static let exchangeBatch = 64

    // MARK: Events

    /// Handles an event of a downstream socket.
    mutating func downstreamEvent(_ downstream: Handle<DownstreamConnection>, _ readiness: Readiness) {
        guard loop.downstreams.all.contains(downstream) else { return }
        if loop.downstreams[downstream].phase == .handshake {
            return loop.downstreams.queueHandshakeEvents(downstream, readiness, &loop.context)
        }
        downstreamIsReady(downstream, readiness)
    }

    /// Reads and writes a downstream socket as far as it is ready.
    mutating func downstreamIsReady(_ downstream: Handle<DownstreamConnection>, _ readiness: Readiness) {
        // A tunnel that was half-closed reports a hangup with the other direction: its last bytes are still to be read.
        if readiness.has(loop.exchanges.isTunnel(loop.downstreams[downstream].exchange) ? .failed : .broken) {
            return loop.abandon(downstream)
        }
        if readiness.has(.writable),
            !loop.downstreams[downstream].exchange.isNone || !loop.downstreams[downstream].transport.output.isEmpty
        {
            loop.downstreams[downstream].transport.output.isEmpty
                ? RequestForwarder.resumeSplice(toDownstream: downstream, &loop)
                : loop.flush(downstream: downstream)
            guard loop.downstreams[downstream].isAlive else { return }
        }
        if readiness.has(.readClosed) { loop.downstreams[downstream].transport.isReadClosed = true }
        if readiness.has(.input) { readDownstream(downstream) }
    }

    /// Consumes what was received before and reads on.
    mutating func continueDownstream(_ downstream: Handle<DownstreamConnection>) {
        if !loop.downstreams[downstream].reader.input.isEmpty { consumeInput(downstream) }
        guard loop.downstreams[downstream].isAlive else { return }
        guard loop.downstreams[downstream].isStream else { return readDownstream(downstream) }
        let exchange = loop.downstreams[downstream].exchange
        if exchange.isNone || !resume(exchange, .turn) { RequestForwarder.finishStreamInput(downstream, &loop) }
    }

    mutating func readDownstream(_ downstream: Handle<DownstreamConnection>) {
        for _ in 0..<EventLoop.readBatch {
            guard loop.downstreams.wantsInput(downstream, &loop.exchanges) else {
                loop.downstreams[downstream].transport.mayHaveUnread = true
                if loop.downstreams[downstream].transport.isReadClosed { loop.halfClosed(downstream) }
                return
            }
            if loop.downstreams[downstream].transport.isBulk, RequestForwarder.spliceBody(downstream, &loop) { return }
            switch loop.downstreams[downstream].transport.receive(into: loop.context.scratch.receiveBuffer) {
            case .bytes(let count):
                unsafe receivedBytes(downstream, loop.receiveBuffer.bytes(count))
                guard loop.downstreams[downstream].isAlive else { return }
                if count < ReceiveBuffer.size, !loop.downstreams[downstream].transport.isReadClosed {
                    loop.downstreams[downstream].transport.mayHaveUnread = false
                    return
                }
            case .closed:
                loop.downstreams[downstream].transport.isReadClosed = true
                return loop.downstreamReadClosed(downstream)
            case .blocked:
                loop.downstreams[downstream].transport.mayHaveUnread = false
                return
            case .failed: return loop.abandon(downstream)
            }
        }
        loop.downstreams.markReady(downstream, &loop.context)
    }

    /// Handles bytes from the socket.
    mutating func receivedBytes(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        switch loop.downstreams[downstream].phase {
        case .proxyHeader: unsafe receiveProxyHeader(downstream, bytes)
        case .handshake: unsafe advanceHandshake(downstream, bytes)
        case .lingering: loop.linger(downstream, received: bytes.count)
        default:
            unsafe loop.downstreams[downstream].origin.rules.isSecure
                ? decrypt(downstream, bytes)
                : receivedPlaintext(downstream, bytes)
        }
    }

    /// Handles HTTP bytes, decrypted where the connection uses TLS.
    mutating func receivedPlaintext(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        if loop.downstreams[downstream].kind == .http2 { return unsafe receiveFrames(bytes, from: downstream) }
        guard loop.downstreams[downstream].reader.input.isEmpty else {
            unsafe loop.downstreams[downstream].reader.input.append(bytes)
            return consumeInput(downstream)
        }
        let used = unsafe consumeBytes(bytes, from: downstream)
        guard loop.downstreams[downstream].isAlive else { return }
        if !loop.context.scratch.encodedInput.isEmpty {
            swap(&loop.downstreams[downstream].reader.input, &loop.context.scratch.encodedInput)
            return consumeInput(downstream)
        }
        guard used < bytes.count else { return }
        unsafe loop.downstreams[downstream].reader.input.append(unsafe UnsafeBufferPointer(rebasing: bytes[used...]))
    }

    mutating func consumeInput(_ downstream: Handle<DownstreamConnection>) {
        var used = unsafe consumeBytes(unsafe loop.downstreams[downstream].reader.input.bytes, from: downstream)
        while loop.downstreams[downstream].isAlive, !loop.context.scratch.encodedInput.isEmpty {
            swap(&loop.downstreams[downstream].reader.input, &loop.context.scratch.encodedInput)
            loop.context.scratch.encodedInput.release()
            used = unsafe consumeBytes(unsafe loop.downstreams[downstream].reader.input.bytes, from: downstream)
        }
        guard loop.downstreams[downstream].isAlive else { return }
        loop.downstreams[downstream].reader.input.consume(used)
        if loop.downstreams[downstream].reader.input.isEmpty { loop.downstreams[downstream].reader.input.release() }
    }

    // MARK: Codec

    /// Consumes received bytes as far as the phase allows.
    ///
    /// Where the target of a request has characters beyond ASCII, `encodedInput` of the scratch memory has these bytes
    /// with them encoded, from that request on, and the caller continues with those.
    /// - Returns: how many were consumed; the rest is buffered.
    private mutating func consumeBytes(
        _ bytes: UnsafeBufferPointer<UInt8>, from downstream: Handle<DownstreamConnection>
    ) -> Int {
        var offset = 0
        while offset < bytes.count {
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes[offset...])
            switch loop.downstreams[downstream].phase {
            case .head:
                guard !loop.downstreams[downstream].stream.isResponseComplete else { return bytes.count }
                guard loop.downstreams.acceptsHead(downstream) else { return offset }
                // No caller of this function uses a handle of an exchange afterwards.
                if loop.exchanges.all.retiredCount >= EventLoop.exchangeBatch { loop.exchanges.all.reclaim() }
                if loop.downstreams.mayBecomeHTTP2(downstream) {
                    switch unsafe HTTP2Preface.compare(rest) {
                    case .other: break
                    case .incomplete:
                        loop.downstreams.awaitHead(downstream, &loop.context)
                        return offset
                    case .whole:
                        loop.downstreams.startHTTP2(downstream, &loop.context)
                        unsafe receiveFrames(rest, from: downstream)
                        return bytes.count
                    }
                }
                guard let used = unsafe parseHead(rest, from: downstream) else { return offset }
                offset &+= used
            case .exchange:
                let exchange = loop.downstreams[downstream].exchange
                guard !loop.exchanges[exchange].body.isComplete else { return offset }
                let used = unsafe RequestForwarder.consumeBody(rest, for: exchange, &loop)
                guard loop.downstreams[downstream].isAlive else { return bytes.count }
                guard used > 0 else { return offset }
                offset &+= used
            case .waiting: return offset
            case .proxyHeader, .handshake, .lingering, .frames: return bytes.count
            }
            guard loop.downstreams[downstream].isAlive else { return bytes.count }
        }
        return offset
    }

    /// - Returns: the size of a complete head; `nil` when it is incomplete or has to stay in the buffer.
    @inline(__always)
    private mutating func parseHead(
        _ bytes: UnsafeBufferPointer<UInt8>, from downstream: Handle<DownstreamConnection>
    ) -> Int? {
        var parser = loop.downstreams[downstream].reader.parser
        let outcome = unsafe parser.parse(bytes.span, into: &router.head)
        loop.downstreams[downstream].reader.parser = parser
        switch outcome {
        case .needMore:
            loop.downstreams.awaitHead(downstream, &loop.context)
            return nil
        case .complete(let count):
            loop.downstreams[downstream].reader.isReceivingHead = false
            let exchange = unsafe router.beginExchange(
                downstream, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), &loop.exchanges, &loop.downstreams,
                &loop.context)
            unsafe RequestAdmission.begin(
                exchange, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), &self)
            return loop.downstreams[downstream].isAlive && loop.downstreams[downstream].phase == .waiting
                ? nil : count
        case .failure(let failure):
            if failure == .badRequestLine,
                unsafe TargetEncoding.encodeRequestLine(of: bytes.span, into: &loop.context.scratch.encodedInput)
            {
                return bytes.count
            }
            loop.context.scratch.encodedInput.removeAll()
            let exchange = loop.exchanges.beginUnparsed(downstream, &loop.downstreams, &loop.context)
            unsafe loop.exchanges[exchange].record.texts.set(unreadable: bytes)
            let kind = unsafe GRPCKind(unreadableHead: bytes)
            // HTTP/1 carries no other gRPC.
            if kind != .http2 { loop.exchanges[exchange].request.grpc = kind }
            loop.reject(exchange, .head(failure))
            return bytes.count
        }
    }

    /// Processes a request that has waited, if this is what it waits for.
    @discardableResult
    @inline(never)
    mutating func resume(_ exchange: Handle<Exchange>, _ end: Suspension.End) -> Bool {
        guard loop.exchanges.all.contains(exchange) else { return false }
        let downstream = loop.exchanges[exchange].downstream
        switch loop.exchanges[exchange].resume(end, epoch: authenticator.epoch) {
        case .process(let result): processAgain(downstream, with: result)
        case .takeHead:
            CheckExchanges.takeHead(of: downstream, &loop.exchanges, &loop.downstreams)
            processAgain(downstream, with: nil)
        case .none: return false
        }
        return true
    }

    /// Processes the waiting head, with the result of verifying its credential.
    private mutating func processAgain(_ downstream: Handle<DownstreamConnection>, with result: VerificationResult?) {
        let bytes = unsafe loop.downstreams[downstream].reader.input.bytes
        var parser = loop.downstreams[downstream].reader.parser
        parser.reset()
        let outcome = unsafe parser.parse(bytes.span, into: &router.head)
        loop.downstreams[downstream].phase = .exchange
        let exchange = loop.downstreams[downstream].exchange
        // A reload may have lowered a limit.
        if case .failure(let failure) = outcome { return loop.reject(exchange, .head(failure)) }
        guard case .complete(let count) = outcome else { return loop.abandon(downstream) }
        unsafe processRequest(
            exchange, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]),
            verification: result.map(BoxedVerificationResult.init))
        guard loop.downstreams[downstream].isAlive, loop.downstreams[downstream].phase != .waiting else {
            return
        }
        loop.downstreams[downstream].reader.input.consume(count)
        let isInputLeft = !loop.downstreams[downstream].reader.input.isEmpty
        if !isInputLeft { loop.downstreams[downstream].reader.input.release() }
        // Where nothing else was received, there is nothing to read either: an event will tell.
        if isInputLeft || loop.downstreams[downstream].transport.mayHaveUnread
            || loop.downstreams[downstream].transport.isReadClosed
            || loop.downstreams[downstream].isStream
        {
            continueDownstream(downstream)
        }
    }
}
