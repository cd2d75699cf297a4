internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletResponder
internal import MartletTLS

/// TLS and the PROXY protocol between an upstream socket and its HTTP.
extension EventLoop {
    // MARK: Before the first request

    /// Whether a preamble precedes the first request: a PROXY protocol header or a TLS handshake.
    func needsPreamble(_ upstream: Handle<UpstreamConnection>) -> Bool {
        upstreams[upstream].transport.isSecure
            || directory.endpoints[Int(upstreams[upstream].endpoint)].transport.sendsProxyHeader
    }

    /// Sends the PROXY protocol header, and starts the TLS handshake.
    mutating func startPreamble(_ upstream: Handle<UpstreamConnection>) {
        let endpoint = Int(upstreams[upstream].endpoint)
        if directory.endpoints[endpoint].transport.sendsProxyHeader { writeProxyHeader(upstream) }
        guard upstreams[upstream].transport.isSecure else {
            flushTransport(upstream)
            return upstreamReady(upstream)
        }
        guard let context = directory.endpoints[endpoint].transport.tls else {
            return connectFailed(upstream, .upstreamUnavailable("tls.set_up_failed"))
        }
        do throws(TLSError) {
            upstreams[upstream].transport.engine = try context.makeEngine(
                serverName: directory.endpoints[endpoint].transport.serverName)
            try upstreams[upstream].transport.engine?.start()
        } catch {
            return connectFailed(upstream, .upstreamUnavailable(error.code))
        }
        upstreams[upstream].phase = .handshake
        upstreams[upstream].transport.engine?.dequeueCiphertext(into: &upstreams[upstream].transport.output)
        flushTransport(upstream)
    }

    /// Writes the client that the connection is for; it carries no other client's requests.
    private mutating func writeProxyHeader(_ upstream: Handle<UpstreamConnection>) {
        let exchange = upstreams[upstream].exchange
        guard !exchange.isNone else {
            return ProxyHeader.write(client: nil, server: nil, into: &upstreams[upstream].transport.output)
        }
        let downstream = exchanges[exchange].downstream
        let address = downstreams[downstream].origin.address
        // The destination is the address that the client connected to.
        let socket = downstreams[
            downstreams[downstream].isStream ? downstreams[downstream].stream.connection : downstream
        ].transport.fd
        let server = Socket.localAddress(socket)
        ProxyHeader.write(
            client: address.isUnix ? nil : ProxyHeader.Address(bytes: address.bytes, port: address.port),
            server: server.flatMap { address in
                address.isUnix ? nil : ProxyHeader.Address(bytes: address.addressBytes, port: address.port)
            }, into: &upstreams[upstream].transport.output)
    }

    // MARK: Reading

    /// Handles bytes that are not clear-text HTTP/1.
    mutating func receiveEncoded(_ upstream: Handle<UpstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard upstreams[upstream].transport.isSecure else { return unsafe receiveResponseFrames(upstream, bytes) }
        let unsent = upstreams[upstream].transport.output.count
        plaintext.removeAll()
        let lent = unsafe upstreams.address(of: upstream)
        let failure = unsafe lent.pointee.transport.decrypt(bytes, into: &plaintext)
        if upstreams[upstream].transport.output.count > unsent { flushTransport(upstream) }
        if let failure { return upstreamBroke(upstream, failure.code) }
        if upstreams[upstream].phase == .handshake, upstreams[upstream].transport.engine?.isEstablished == true {
            handshakeCompleted(upstream)
        }
        guard upstreams[upstream].isAlive else { return }
        let isOver = upstreams[upstream].transport.engine?.isPeerClosed == true
        // Bytes on an idle connection are unsolicited: close it.
        if upstreams[upstream].phase == .idle, isOver || !plaintext.isEmpty { return closeUpstream(upstream) }
        if !plaintext.isEmpty {
            unsafe upstreams[upstream].kind == .http2
                ? receiveResponseFrames(upstream, plaintext.bytes)
                : receivedResponse(upstream, plaintext.bytes)
        }
        guard isOver, upstreams[upstream].isAlive, upstreams[upstream].phase != .idle,
            !upstreams[upstream].isPaused
        else { return }
        upstreamReadClosed(upstream)
    }

    private mutating func handshakeCompleted(_ upstream: Handle<UpstreamConnection>) {
        let speaksHTTP2 = upstreams[upstream].transport.engine?.applicationProtocol == .http2
        guard speaksHTTP2 == (upstreams[upstream].kind == .http2) else {
            return connectFailed(upstream, .upstreamUnavailable("upstream.protocol_not_offered"))
        }
        upstreamReady(upstream)
    }

    // MARK: Writing

    /// Flushes a connection that is not clear-text HTTP/1.
    mutating func flushEncoded(_ upstream: Handle<UpstreamConnection>) {
        switch upstreams[upstream].kind {
        case .stream: flushStream(upstream)
        case .http2: flushUpstreamFrames(upstream)
        case .http1:
            let exchange = upstreams[upstream].exchange
            guard upstreams[upstream].isUp, !exchange.isNone else { return flushTransport(upstream) }
            // When the kernel has accepted everything, no event will ask for what is not encrypted yet.
            repeat {
                guard encryptRequest(upstream) else { return }
                flushTransport(upstream)
            } while upstreams[upstream].transport.output.isEmpty && !upstreams[upstream].output.isEmpty
            if isTunnel(exchange), unsent(upstream) == 0 { advanceTunnel(exchange) }
            guard upstreams[upstream].isAlive, upstreams[upstream].exchange == exchange else { return }
            if !exchanges[exchange].body.isComplete { armResponseTimeout(upstream) }
            resumeDownstream(of: exchange)
        }
    }

    /// Encrypts the head first, then the body.
    private mutating func encryptRequest(_ upstream: Handle<UpstreamConnection>) -> Bool {
        // While the kernel accepts nothing, nothing more is encrypted.
        guard upstreams[upstream].transport.output.count < EventLoop.highWatermark else { return true }
        let exchange = upstreams[upstream].exchange
        let head = unsafe UnsafeBufferPointer(
            rebasing: exchanges[exchange].forwarding.head.bytes[exchanges[exchange].forwarding.headSent...])
        do throws(TLSError) {
            if head.count > 0 { try unsafe upstreams[upstream].transport.engine?.send(head) }
            if !upstreams[upstream].output.isEmpty {
                try unsafe upstreams[upstream].transport.engine?.send(upstreams[upstream].output.bytes)
            }
        } catch {
            sendFailed(upstream)
            return false
        }
        exchanges[exchange].forwarding.headSent = exchanges[exchange].forwarding.head.count
        upstreams[upstream].output.release()
        upstreams[upstream].transport.engine?.dequeueCiphertext(into: &upstreams[upstream].transport.output)
        return true
    }

    /// Sends what is ready for the socket.
    mutating func flushTransport(_ upstream: Handle<UpstreamConnection>) {
        if upstreams[upstream].transport.flush(now: now) == .failed { transportFailed(upstream) }
    }

    /// Sending failed; what the upstream has sent before is read first.
    mutating func transportFailed(_ upstream: Handle<UpstreamConnection>) {
        upstreams[upstream].transport.output.removeAll()
        upstreams[upstream].transport.isReadClosed = true
        markReady(upstream: upstream)
    }
}
