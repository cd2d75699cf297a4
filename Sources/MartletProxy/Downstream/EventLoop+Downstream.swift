private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// Reads downstream connections and feeds the codec.
extension EventLoop {
    /// Most reads of one connection before others have their turn.
    private static let readBatch = 16

    /// Starts the TLS handshake, or waits for a request in clear text.
    mutating func startTransport(_ downstream: Int32) {
        guard downstreams[downstream].rules.isSecure else {
            downstreams[downstream].phase = .head
            return arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.requestHead)
        }
        downstreams[downstream].phase = .handshake
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.handshake)
    }

    // MARK: Events

    /// Handles an event of a downstream socket.
    mutating func downstreamEvent(_ token: EventToken, _ readiness: Readiness) {
        guard downstreams.contains(token.index, token.generation) else { return }
        if downstreams[token.index].phase == .handshake { return queueHandshakeEvents(token, readiness) }
        downstreamIsReady(token, readiness)
    }

    /// Reads and writes a downstream socket as far as it is ready.
    mutating func downstreamIsReady(_ token: EventToken, _ readiness: Readiness) {
        let downstream = token.index
        // A tunnel that was half-closed reports a hangup with the other direction: its last bytes are still to be read.
        if readiness.has(isTunnel(downstreams[downstream].exchange) ? .failed : .broken) { return abandon(downstream) }
        if readiness.has(.writable), downstreams[downstream].exchange >= 0 || !downstreams[downstream].output.isEmpty {
            downstreams[downstream].output.isEmpty
                ? resumeSplice(toDownstream: downstream)
                : flush(downstream: downstream)
            guard downstreams.contains(downstream, token.generation) else { return }
        }
        if readiness.has(.readClosed) { downstreams[downstream].isReadClosed = true }
        if readiness.has(.input) { readDownstream(downstream) }
    }

    /// Consumes what was received before and reads on.
    mutating func continueDownstream(_ downstream: Int32) {
        let generation = downstreams[downstream].generation
        if !downstreams[downstream].input.isEmpty { consumeInput(downstream) }
        guard downstreams.contains(downstream, generation) else { return }
        downstreams[downstream].isStream ? finishStreamInput(downstream) : readDownstream(downstream)
    }

    /// Whether input from the client can be used now.
    private func wantsInput(_ downstream: Int32) -> Bool {
        switch downstreams[downstream].phase {
        case .head: return acceptsHead(downstream)
        case .lingering, .proxyHeader: return true
        case .handshake: return !downstreams[downstream].isHandshakeOffloaded
        // A peer that reads no frames may not send more of its own.
        case .frames: return acceptsHead(downstream)
        case .authenticating: return false
        case .exchange:
            return !downstreams[downstream].isPaused && downstreams[downstream].pipe < 0
                && !exchanges[downstreams[downstream].exchange].isRequestComplete
        }
    }

    /// Whether another request may begin: not after the last response, nor while too much output is unsent.
    private func acceptsHead(_ downstream: Int32) -> Bool {
        !downstreams[downstream].closesAfterFlush && downstreams[downstream].output.count <= EventLoop.highWatermark
    }

    mutating func readDownstream(_ downstream: Int32) {
        let generation = downstreams[downstream].generation
        for _ in 0..<EventLoop.readBatch {
            guard wantsInput(downstream) else {
                downstreams[downstream].mayHaveUnread = true
                if downstreams[downstream].isReadClosed { handleHalfClose(downstream) }
                return
            }
            if downstreams[downstream].isBulk, spliceBody(downstream) { return }
            let count = receiveBuffer.receive(from: downstreams[downstream].fd)
            if count > 0 {
                downstreams[downstream].isBulk = count == ReceiveBuffer.size
                unsafe receivedBytes(downstream, receiveBuffer.bytes(count))
                guard downstreams.contains(downstream, generation) else { return }
                if count < ReceiveBuffer.size, !downstreams[downstream].isReadClosed {
                    downstreams[downstream].mayHaveUnread = false
                    return
                }
            } else if count == 0 {
                downstreams[downstream].isReadClosed = true
                return downstreamReadClosed(downstream)
            } else {
                downstreams[downstream].mayHaveUnread = false
                let reason = martlet_errno()
                if reason != EAGAIN && reason != EINTR { abandon(downstream) }
                return
            }
        }
        markReady(downstream: downstream)
    }

    /// Handles bytes from the socket.
    mutating func receivedBytes(_ downstream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        switch downstreams[downstream].phase {
        case .proxyHeader: unsafe receiveProxyHeader(downstream, bytes)
        case .handshake: unsafe advanceHandshake(downstream, bytes)
        case .lingering: linger(downstream, received: bytes.count)
        default:
            unsafe downstreams[downstream].rules.isSecure
                ? decrypt(downstream, bytes)
                : receivedPlaintext(downstream, bytes)
        }
    }

    /// Handles HTTP bytes, decrypted where the connection uses TLS.
    mutating func receivedPlaintext(_ downstream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        if downstreams[downstream].kind == .http2 { return unsafe receiveFrames(bytes, from: downstream) }
        guard downstreams[downstream].input.isEmpty else {
            unsafe downstreams[downstream].input.append(bytes)
            return consumeInput(downstream)
        }
        let generation = downstreams[downstream].generation
        let used = unsafe consumeBytes(bytes, from: downstream)
        guard downstreams.contains(downstream, generation), used < bytes.count else { return }
        unsafe downstreams[downstream].input.append(unsafe UnsafeBufferPointer(rebasing: bytes[used...]))
    }

    mutating func consumeInput(_ downstream: Int32) {
        let generation = downstreams[downstream].generation
        let used = unsafe consumeBytes(unsafe downstreams[downstream].input.bytes, from: downstream)
        guard downstreams.contains(downstream, generation) else { return }
        downstreams[downstream].input.consume(used)
        if downstreams[downstream].input.isEmpty { downstreams[downstream].input.release() }
    }

    // MARK: Codec

    /// Consumes received bytes as far as the phase allows.
    /// - Returns: how many were consumed; the rest is buffered.
    private mutating func consumeBytes(_ bytes: UnsafeBufferPointer<UInt8>, from downstream: Int32) -> Int {
        let generation = downstreams[downstream].generation
        var offset = 0
        while offset < bytes.count {
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes[offset...])
            switch downstreams[downstream].phase {
            case .head:
                guard !downstreams[downstream].isResponseComplete else { return bytes.count }
                guard acceptsHead(downstream) else { return offset }
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
                guard !exchanges[exchange].isRequestComplete else { return offset }
                let used = unsafe consumeBody(rest, for: exchange)
                guard downstreams.contains(downstream, generation) else { return bytes.count }
                guard used > 0 else { return offset }
                offset &+= used
            case .authenticating: return offset
            case .proxyHeader, .handshake, .lingering, .frames: return bytes.count
            }
            guard downstreams.contains(downstream, generation) else { return bytes.count }
        }
        return offset
    }

    /// - Returns: the size of a complete head; `nil` when it is incomplete or has to stay in the buffer.
    @inline(__always)
    private mutating func parseHead(_ bytes: UnsafeBufferPointer<UInt8>, from downstream: Int32) -> Int? {
        var parser = downstreams[downstream].parser
        let outcome = unsafe parser.parse(bytes.span, into: &head)
        downstreams[downstream].parser = parser
        switch outcome {
        case .needMore:
            awaitHead(downstream)
            return nil
        case .complete(let count):
            downstreams[downstream].isReceivingHead = false
            let exchange = unsafe beginExchange(downstream, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]))
            unsafe admit(exchange, unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), verification: nil)
            return downstreams[downstream].isAlive && downstreams[downstream].phase == .authenticating ? nil : count
        case .failure(let failure):
            let exchange = beginUnparsed(downstream)
            unsafe exchanges[exchange].texts.set(unreadable: bytes)
            reject(exchange, .head(failure))
            return bytes.count
        }
    }

    /// Part of a head was received; the rest must follow in time.
    private mutating func awaitHead(_ downstream: Int32) {
        guard !downstreams[downstream].isReceivingHead else { return }
        downstreams[downstream].isReceivingHead = true
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.requestHead)
    }

    /// Processes the waiting head again, with the result of verifying its credential.
    mutating func resumeRequest(_ downstream: Int32, with result: VerificationResult?) {
        let generation = downstreams[downstream].generation
        let bytes = unsafe downstreams[downstream].input.bytes
        var parser = downstreams[downstream].parser
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
        guard downstreams.contains(downstream, generation), downstreams[downstream].phase != .authenticating else {
            return
        }
        downstreams[downstream].input.consume(count)
        let isInputLeft = !downstreams[downstream].input.isEmpty
        if !isInputLeft { downstreams[downstream].input.release() }
        // Where nothing else was received, there is nothing to read either: an event will tell.
        if isInputLeft || downstreams[downstream].mayHaveUnread || downstreams[downstream].isReadClosed
            || downstreams[downstream].isStream
        {
            continueDownstream(downstream)
        }
    }
}
