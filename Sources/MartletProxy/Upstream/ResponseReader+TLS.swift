internal import MartletCore
internal import MartletDecisions
internal import MartletResponder
internal import MartletTLS

/// Upstream connections with a preamble: a PROXY header, a TLS handshake, or both.
extension ResponseReader {
    /// Sends the PROXY protocol header, and starts the TLS handshake.
    mutating func startPreamble(_ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        let endpoint = Int(loop.upstreams[upstream].endpoint)
        if loop.upstreams.directory.endpoints[endpoint].transport.sendsProxyHeader,
            loop.upstreams[upstream].transport.output.isEmpty
        {
            loop.upstreams.writeProxyHeader(upstream, &loop.downstreams, &loop.exchanges)
        }
        guard loop.upstreams[upstream].transport.isSecure else {
            loop.upstreams.flushTransport(upstream, &loop.context)
            // No request overtakes the rest of the header: the event that reports room comes here again.
            guard loop.upstreams[upstream].transport.output.isEmpty else { return }
            return RequestForwarder.upstreamReady(upstream, &loop)
        }
        guard let tls = loop.upstreams.directory.endpoints[endpoint].transport.tls else {
            return RequestForwarder.connectFailed(upstream, .upstreamUnavailable("tls.set_up_failed"), &loop)
        }
        do throws(TLSError) {
            loop.upstreams[upstream].transport.engine = try tls.makeEngine(
                serverName: loop.upstreams.directory.endpoints[endpoint].transport.serverName)
            try loop.upstreams[upstream].transport.engine?.start()
        } catch {
            return RequestForwarder.connectFailed(upstream, .upstreamUnavailable(error.code), &loop)
        }
        loop.upstreams[upstream].phase = .handshake
        loop.upstreams[upstream].transport.takeCiphertext()
        loop.upstreams.flushTransport(upstream, &loop.context)
    }

    /// Handles bytes that are not clear-text HTTP/1.
    mutating func receiveEncoded(
        _ upstream: Handle<UpstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        guard loop.upstreams[upstream].transport.isSecure else {
            return unsafe receiveResponseFrames(upstream, bytes, &loop)
        }
        let unsent = loop.upstreams[upstream].transport.output.count
        loop.context.scratch.plaintext.removeAll()
        let lent = unsafe loop.upstreams.all.address(of: upstream)
        let failure = unsafe lent.pointee.transport.decrypt(bytes, into: &loop.context.scratch.plaintext)
        if loop.upstreams[upstream].transport.output.count > unsent {
            loop.upstreams.flushTransport(upstream, &loop.context)
        }
        if let failure { return upstreamBroke(upstream, failure.code, &loop) }
        if loop.upstreams[upstream].phase == .handshake,
            loop.upstreams[upstream].transport.engine?.isEstablished == true
        {
            handshakeCompleted(upstream, &loop)
        }
        guard loop.upstreams[upstream].isAlive else { return }
        let isOver = loop.upstreams[upstream].transport.engine?.isPeerClosed == true
        // Bytes on an idle connection are unsolicited: close it.
        if loop.upstreams[upstream].phase == .idle, isOver || !loop.context.scratch.plaintext.isEmpty {
            return loop.upstreams.close(upstream, &loop.context)
        }
        if !loop.context.scratch.plaintext.isEmpty {
            unsafe loop.upstreams[upstream].kind == .http2
                ? receiveResponseFrames(upstream, loop.context.scratch.plaintext.bytes, &loop)
                : receivedResponse(upstream, loop.context.scratch.plaintext.bytes, &loop)
        }
        guard isOver, loop.upstreams[upstream].isAlive, loop.upstreams[upstream].phase != .idle,
            !loop.upstreams[upstream].isPaused
        else { return }
        upstreamReadClosed(upstream, &loop)
    }

    mutating func handshakeCompleted(_ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        let speaksHTTP2 = loop.upstreams[upstream].transport.engine?.applicationProtocol == .http2
        guard speaksHTTP2 == (loop.upstreams[upstream].kind == .http2) else {
            return RequestForwarder.connectFailed(
                upstream, .upstreamUnavailable("upstream.protocol_not_offered"), &loop)
        }
        RequestForwarder.upstreamReady(upstream, &loop)
    }
}
