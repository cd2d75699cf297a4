private import CLinux
internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletResponder
internal import MartletTLS

/// Reads downstream connections and feeds the codec.
extension EventLoop {
    /// Most reads of one connection before others have their turn.
    private static let readBatch = 16
    /// When so many exchanges have ended in an iteration, their slots are freed before the next head: a client that
    /// pipelines its requests would otherwise use one for each.
    private static let exchangeBatch = 64

    /// Starts the TLS handshake, or waits for a request in clear text.
    mutating func startTransport(_ downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].origin.rules.isSecure else {
            downstreams[downstream].phase = .head
            return arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.requestHead)
        }
        downstreams[downstream].phase = .handshake
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.handshake)
    }

    // MARK: Events

    /// Handles an event of a downstream socket.
    mutating func downstreamEvent(_ downstream: Handle<DownstreamConnection>, _ readiness: Readiness) {
        guard downstreams.contains(downstream) else { return }
        if downstreams[downstream].phase == .handshake { return queueHandshakeEvents(downstream, readiness) }
        downstreamIsReady(downstream, readiness)
    }

    /// Reads and writes a downstream socket as far as it is ready.
    mutating func downstreamIsReady(_ downstream: Handle<DownstreamConnection>, _ readiness: Readiness) {
        // A tunnel that was half-closed reports a hangup with the other direction: its last bytes are still to be read.
        if readiness.has(isTunnel(downstreams[downstream].exchange) ? .failed : .broken) { return abandon(downstream) }
        if readiness.has(.writable),
            !downstreams[downstream].exchange.isNone || !downstreams[downstream].transport.output.isEmpty
        {
            downstreams[downstream].transport.output.isEmpty
                ? resumeSplice(toDownstream: downstream)
                : flush(downstream: downstream)
            guard downstreams[downstream].isAlive else { return }
        }
        if readiness.has(.readClosed) { downstreams[downstream].transport.isReadClosed = true }
        if readiness.has(.input) { readDownstream(downstream) }
    }

    /// Consumes what was received before and reads on.
    mutating func continueDownstream(_ downstream: Handle<DownstreamConnection>) {
        if !downstreams[downstream].reader.input.isEmpty { consumeInput(downstream) }
        guard downstreams[downstream].isAlive else { return }
        downstreams[downstream].isStream ? finishStreamInput(downstream) : readDownstream(downstream)
    }

    /// Whether input from the client can be used now.
    private func wantsInput(_ downstream: Handle<DownstreamConnection>) -> Bool {
        switch downstreams[downstream].phase {
        case .head: return acceptsHead(downstream)
        case .lingering, .proxyHeader: return true
        case .handshake: return !downstreams[downstream].handshake.isOffloaded
        // A peer that reads no frames may not send more of its own.
        case .frames: return acceptsHead(downstream)
        case .authenticating: return false
        case .exchange:
            return !downstreams[downstream].isPaused && downstreams[downstream].pipe.isNone
                && !exchanges[downstreams[downstream].exchange].body.isComplete
        }
    }

    /// Whether another request may begin: not after the last response, nor while too much output is unsent.
    private func acceptsHead(_ downstream: Handle<DownstreamConnection>) -> Bool {
        !downstreams[downstream].ending.closesAfterFlush
            && downstreams[downstream].transport.output.count <= EventLoop.highWatermark
    }

    mutating func readDownstream(_ downstream: Handle<DownstreamConnection>) {
        for _ in 0..<EventLoop.readBatch {
            guard wantsInput(downstream) else {
                downstreams[downstream].transport.mayHaveUnread = true
                if downstreams[downstream].transport.isReadClosed { handleHalfClose(downstream) }
                return
            }
            if downstreams[downstream].transport.isBulk, spliceBody(downstream) { return }
            switch downstreams[downstream].transport.receive(into: receiveBuffer) {
            case .bytes(let count):
                unsafe receivedBytes(downstream, receiveBuffer.bytes(count))
                guard downstreams[downstream].isAlive else { return }
                if count < ReceiveBuffer.size, !downstreams[downstream].transport.isReadClosed {
                    downstreams[downstream].transport.mayHaveUnread = false
                    return
                }
            case .closed:
                downstreams[downstream].transport.isReadClosed = true
                return downstreamReadClosed(downstream)
            case .blocked:
                downstreams[downstream].transport.mayHaveUnread = false
                return
            case .failed: return abandon(downstream)
            }
        }
        markReady(downstream: downstream)
    }

    /// Handles bytes from the socket.
    mutating func receivedBytes(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        switch downstreams[downstream].phase {
        case .proxyHeader: unsafe receiveProxyHeader(downstream, bytes)
        case .handshake: unsafe advanceHandshake(downstream, bytes)
        case .lingering: linger(downstream, received: bytes.count)
        default:
            unsafe downstreams[downstream].origin.rules.isSecure
                ? decrypt(downstream, bytes)
                : receivedPlaintext(downstream, bytes)
        }
    }

    /// Handles HTTP bytes, decrypted where the connection uses TLS.
    mutating func receivedPlaintext(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        if downstreams[downstream].kind == .http2 { return unsafe receiveFrames(bytes, from: downstream) }
        guard downstreams[downstream].reader.input.isEmpty else {
            unsafe downstreams[downstream].reader.input.append(bytes)
            return consumeInput(downstream)
        }
        let used = unsafe consumeBytes(bytes, from: downstream)
        guard downstreams[downstream].isAlive, used < bytes.count else { return }
        unsafe downstreams[downstream].reader.input.append(unsafe UnsafeBufferPointer(rebasing: bytes[used...]))
    }

    mutating func consumeInput(_ downstream: Handle<DownstreamConnection>) {
        let used = unsafe consumeBytes(unsafe downstreams[downstream].reader.input.bytes, from: downstream)
        guard downstreams[downstream].isAlive else { return }
        downstreams[downstream].reader.input.consume(used)
        if downstreams[downstream].reader.input.isEmpty { downstreams[downstream].reader.input.release() }
    }

    // MARK: Codec

    /// Consumes received bytes as far as the phase allows.
    /// - Returns: how many were consumed; the rest is buffered.
    private mutating func consumeBytes(
        _ bytes: UnsafeBufferPointer<UInt8>, from downstream: Handle<DownstreamConnection>
    ) -> Int {
        var offset = 0
        while offset < bytes.count {
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes[offset...])
            switch downstreams[downstream].phase {
            case .head:
                guard !downstreams[downstream].stream.isResponseComplete else { return bytes.count }
                guard acceptsHead(downstream) else { return offset }
                // No caller of this function uses a handle of an exchange afterwards.
                if exchanges.retiredCount >= EventLoop.exchangeBatch { exchanges.reclaim() }
                if mayBecomeHTTP2(downstream) {
                    switch unsafe HTTP2Preface.compare(rest) {
                    case .other: break
                    case .incomplete:
                        awaitHead(downstream)
                        return offset
                    case .whole:
                        startHTTP2(downstream)
                        unsafe receiveFrames(rest, from: downstream)
                        return bytes.count
                    }
                }
                guard let used = unsafe parseHead(rest, from: downstream) else { return offset }
                offset &+= used
            case .exchange:
                let exchange = downstreams[downstream].exchange
                guard !exchanges[exchange].body.isComplete else { return offset }
                let used = unsafe consumeBody(rest, for: exchange)
                guard downstreams[downstream].isAlive else { return bytes.count }
                guard used > 0 else { return offset }
                offset &+= used
            case .authenticating: return offset
            case .proxyHeader, .handshake, .lingering, .frames: return bytes.count
            }
            guard downstreams[downstream].isAlive else { return bytes.count }
        }
        return offset
    }

    /// - Returns: the size of a complete head; `nil` when it is incomplete or has to stay in the buffer.
    @inline(__always)
    private mutating func parseHead(
        _ bytes: UnsafeBufferPointer<UInt8>, from downstream: Handle<DownstreamConnection>
    ) -> Int? {
        var parser = downstreams[downstream].reader.parser
        let outcome = unsafe parser.parse(bytes.span, into: &head)
        downstreams[downstream].reader.parser = parser
        switch outcome {
        case .needMore:
            awaitHead(downstream)
            return nil
        case .complete(let count):
            downstreams[downstream].reader.isReceivingHead = false
            let exchange = unsafe beginExchange(downstream, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]))
            unsafe admit(exchange, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), verification: nil)
            return downstreams[downstream].isAlive && downstreams[downstream].phase == .authenticating ? nil : count
        case .failure(let failure):
            let exchange = beginUnparsed(downstream)
            unsafe exchanges[exchange].record.texts.set(unreadable: bytes)
            reject(exchange, .head(failure))
            return bytes.count
        }
    }

    /// Part of a head was received; the rest must follow in time.
    private mutating func awaitHead(_ downstream: Handle<DownstreamConnection>) {
        guard !downstreams[downstream].reader.isReceivingHead else { return }
        downstreams[downstream].reader.isReceivingHead = true
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.requestHead)
    }

    /// Processes the waiting head again, with the result of verifying its credential.
    mutating func resumeRequest(_ downstream: Handle<DownstreamConnection>, with result: VerificationResult?) {
        let bytes = unsafe downstreams[downstream].reader.input.bytes
        var parser = downstreams[downstream].reader.parser
        parser.reset()
        let outcome = unsafe parser.parse(bytes.span, into: &head)
        downstreams[downstream].phase = .exchange
        let exchange = downstreams[downstream].exchange
        // A reload may have lowered a limit.
        if case .failure(let failure) = outcome { return reject(exchange, .head(failure)) }
        guard case .complete(let count) = outcome else { return abandon(downstream) }
        unsafe admit(
            exchange, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]),
            verification: result.map(BoxedVerificationResult.init))
        guard downstreams[downstream].isAlive, downstreams[downstream].phase != .authenticating else {
            return
        }
        downstreams[downstream].reader.input.consume(count)
        let isInputLeft = !downstreams[downstream].reader.input.isEmpty
        if !isInputLeft { downstreams[downstream].reader.input.release() }
        // Where nothing else was received, there is nothing to read either: an event will tell.
        if isInputLeft || downstreams[downstream].transport.mayHaveUnread
            || downstreams[downstream].transport.isReadClosed
            || downstreams[downstream].isStream
        {
            continueDownstream(downstream)
        }
    }
}
