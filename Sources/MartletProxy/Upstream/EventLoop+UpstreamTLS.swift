private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletTLS

/// TLS and the PROXY protocol between an upstream socket and its HTTP.
extension EventLoop {
    // MARK: Before the first request

    /// Whether a preamble precedes the first request: a PROXY protocol header or a TLS handshake.
    func needsPreamble(_ upstream: Int32) -> Bool {
        upstreams[upstream].isSecure
            || directory.endpoints[Int(upstreams[upstream].endpoint)].transport.sendsProxyHeader
    }

    /// Sends the PROXY protocol header, and starts the TLS handshake.
    mutating func startPreamble(_ upstream: Int32) {
        let endpoint = Int(upstreams[upstream].endpoint)
        if directory.endpoints[endpoint].transport.sendsProxyHeader { writeProxyHeader(upstream) }
        guard upstreams[upstream].isSecure else {
            flushTransport(upstream)
            return upstreamReady(upstream)
        }
        guard let context = directory.endpoints[endpoint].transport.tls else {
            return connectFailed(upstream, .upstreamUnavailable("tls.set_up_failed"))
        }
        do throws(TLSError) {
            upstreams[upstream].engine = try context.makeEngine(
                serverName: directory.endpoints[endpoint].transport.serverName)
            try upstreams[upstream].engine?.start()
        } catch {
            return connectFailed(upstream, .upstreamUnavailable(error.code))
        }
        upstreams[upstream].phase = .handshake
        upstreams[upstream].engine?.dequeueCiphertext(into: &upstreams[upstream].transportOutput)
        flushTransport(upstream)
    }

    /// Writes the client that the connection is for; it carries no other client's requests.
    private mutating func writeProxyHeader(_ upstream: Int32) {
        let exchange = upstreams[upstream].exchange
        guard exchange >= 0 else {
            return ProxyHeader.write(client: nil, server: nil, into: &upstreams[upstream].transportOutput)
        }
        let downstream = exchanges[exchange].downstream
        let address = downstreams[downstream].address
        // The destination is the address that the client connected to.
        let socket = downstreams[downstreams[downstream].isStream ? downstreams[downstream].connection : downstream].fd
        let server = Socket.localAddress(socket)
        ProxyHeader.write(
            client: address.isUnix ? nil : ProxyHeader.Address(bytes: address.bytes, port: address.port),
            server: server.flatMap { address in
                address.isUnix ? nil : ProxyHeader.Address(bytes: address.addressBytes, port: address.port)
            }, into: &upstreams[upstream].transportOutput)
    }

    // MARK: Reading

    /// Handles bytes that are not clear-text HTTP/1.
    mutating func receiveEncoded(_ upstream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard upstreams[upstream].isSecure else { return unsafe receiveResponseFrames(upstream, bytes) }
        let generation = upstreams[upstream].generation
        var opened = ByteBuffer()
        swap(&opened, &plaintext)
        opened.removeAll()
        let failure = unsafe EventLoop.decryptRecords(bytes, &upstreams[upstream].engine, into: &opened)
        swap(&opened, &plaintext)
        if let failure {
            upstreams[upstream].engine?.dequeueCiphertext(into: &upstreams[upstream].transportOutput)
            flushTransport(upstream)
            guard upstreams.contains(upstream, generation) else { return }
            return upstreamBroke(upstream, failure.code)
        }
        let waiting = upstreams[upstream].transportOutput.count
        upstreams[upstream].engine?.dequeueCiphertext(into: &upstreams[upstream].transportOutput)
        if upstreams[upstream].transportOutput.count > waiting { flushTransport(upstream) }
        if upstreams[upstream].phase == .handshake, upstreams[upstream].engine?.isEstablished == true {
            handshakeCompleted(upstream)
        }
        guard upstreams.contains(upstream, generation) else { return }
        let isOver = upstreams[upstream].engine?.isPeerClosed == true
        // Bytes on an idle connection are unsolicited: close it.
        if upstreams[upstream].phase == .idle, isOver || !plaintext.isEmpty { return closeUpstream(upstream) }
        if !plaintext.isEmpty {
            unsafe upstreams[upstream].kind == .http2
                ? receiveResponseFrames(upstream, plaintext.bytes)
                : receivedResponse(upstream, plaintext.bytes)
        }
        guard isOver, upstreams.contains(upstream, generation), upstreams[upstream].phase != .idle,
            !upstreams[upstream].isPaused
        else { return }
        upstreamReadClosed(upstream)
    }

    private mutating func handshakeCompleted(_ upstream: Int32) {
        let speaksHTTP2 = upstreams[upstream].engine?.applicationProtocol == .http2
        guard speaksHTTP2 == (upstreams[upstream].kind == .http2) else {
            return connectFailed(upstream, .upstreamUnavailable("upstream.protocol_not_offered"))
        }
        upstreamReady(upstream)
    }

    // MARK: Writing

    /// Flushes a connection that is not clear-text HTTP/1.
    mutating func flushEncoded(_ upstream: Int32) {
        switch upstreams[upstream].kind {
        case .stream: flushStream(upstream)
        case .http2: flushUpstreamFrames(upstream)
        case .http1:
            let (generation, exchange) = (upstreams[upstream].generation, upstreams[upstream].exchange)
            guard upstreams[upstream].isUp, exchange >= 0 else { return flushTransport(upstream) }
            // When the kernel has accepted everything, no event will ask for what is not encrypted yet.
            repeat {
                guard encryptRequest(upstream) else { return }
                flushTransport(upstream)
            } while upstreams[upstream].transportOutput.isEmpty && !upstreams[upstream].output.isEmpty
            if isTunnel(exchange), unsent(upstream) == 0 { advanceTunnel(exchange) }
            guard upstreams.contains(upstream, generation), upstreams[upstream].exchange == exchange else { return }
            if !exchanges[exchange].isRequestComplete { armResponseTimeout(upstream) }
            resumeDownstream(of: exchange)
        }
    }

    /// Encrypts the head first, then the body.
    private mutating func encryptRequest(_ upstream: Int32) -> Bool {
        // While the kernel accepts nothing, nothing more is encrypted.
        guard upstreams[upstream].transportOutput.count < EventLoop.highWatermark else { return true }
        let exchange = upstreams[upstream].exchange
        let head = unsafe UnsafeBufferPointer(rebasing: exchanges[exchange].head.bytes[exchanges[exchange].headSent...])
        do throws(TLSError) {
            if head.count > 0 { try unsafe upstreams[upstream].engine?.send(head) }
            if !upstreams[upstream].output.isEmpty {
                try unsafe upstreams[upstream].engine?.send(upstreams[upstream].output.bytes)
            }
        } catch {
            sendFailed(upstream)
            return false
        }
        exchanges[exchange].headSent = exchanges[exchange].head.count
        upstreams[upstream].output.release()
        upstreams[upstream].engine?.dequeueCiphertext(into: &upstreams[upstream].transportOutput)
        return true
    }

    /// Sends what is ready for the socket.
    mutating func flushTransport(_ upstream: Int32) {
        guard !upstreams[upstream].transportOutput.isEmpty else { return }
        let bytes = unsafe upstreams[upstream].transportOutput.bytes
        let sent = unsafe CLinux.send(upstreams[upstream].fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if sent < 0 {
            let reason = martlet_errno()
            if reason != EAGAIN && reason != EINTR {
                upstreams[upstream].transportOutput.removeAll()
                upstreams[upstream].isReadClosed = true
                markReady(upstream: upstream)
            }
            return
        }
        upstreams[upstream].transportOutput.consume(sent)
        if upstreams[upstream].transportOutput.isEmpty { upstreams[upstream].transportOutput.release() }
    }
}
