private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletResponder
internal import MartletRouter
internal import MartletTLS

/// What concerns an upstream connection together with its exchange.
extension UpstreamConnections {
    /// Whether a part of the request for an upstream is in a pipe.
    mutating func hasRequestInPipe(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections, _ exchanges: inout Exchanges
    ) -> Bool {
        let exchange = self[upstream].exchange
        return !exchange.isNone && !downstreams[exchanges[exchange].downstream].pipe.isNone
    }

    /// Whether the upstream does not wait for the rest of its request: that is complete, or not accepted.
    mutating func isResponseDue(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections, _ exchanges: inout Exchanges
    ) -> Bool {
        exchanges[self[upstream].exchange].body.isComplete || !self[upstream].output.isEmpty
            || hasRequestInPipe(upstream, &downstreams, &exchanges)
    }

    mutating func canSpliceResponse(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections, _ exchanges: inout Exchanges
    ) -> Bool {
        guard self[upstream].canSpliceResponse else { return false }
        let exchange = self[upstream].exchange
        guard !exchange.isNone, !exchanges.isTunnel(exchange) else { return false }
        return downstreams[exchanges[exchange].downstream].acceptsSplicedResponse
    }

    /// Writes the client that the connection is for; it carries no other client's requests.
    mutating func writeProxyHeader(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections, _ exchanges: inout Exchanges
    ) {
        let exchange = self[upstream].exchange
        guard !exchange.isNone else {
            return ProxyHeader.write(client: nil, server: nil, into: &self[upstream].transport.output)
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
            }, into: &self[upstream].transport.output)
    }

    /// Whether there may be something to send: most "writable" events of an edge-triggered socket are redundant.
    @inline(__always)
    mutating func mayHaveUnsent(_ upstream: Handle<UpstreamConnection>, _ exchanges: inout Exchanges) -> Bool {
        if self[upstream].kind != .http1 || self[upstream].transport.isSecure
            || !self[upstream].output.isEmpty
        {
            return true
        }
        let exchange = self[upstream].exchange
        return !exchange.isNone && !exchanges[exchange].forwarding.head.isSent
    }

    /// Encrypts the head first, then the body.
    mutating func encryptRequest(
        _ upstream: Handle<UpstreamConnection>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) -> Bool {
        // While the kernel accepts nothing, nothing more is encrypted.
        guard self[upstream].transport.output.count < Watermark.high else { return true }
        let exchange = self[upstream].exchange
        let head = unsafe exchanges[exchange].forwarding.head.unsent
        do throws(TLSError) {
            if head.count > 0 { try unsafe self[upstream].transport.engine?.send(head) }
            if !self[upstream].output.isEmpty {
                let body = unsafe self[upstream].output.bytes
                try unsafe self[upstream].transport.engine?.send(body)
            }
        } catch {
            sendFailed(upstream, &exchanges, &context)
            return false
        }
        exchanges[exchange].forwarding.head.sent = exchanges[exchange].forwarding.head.count
        self[upstream].output.release()
        self[upstream].transport.takeCiphertext()
        return true
    }

    /// Submits the available part of a request's body to its stream.
    mutating func flushStream(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        let exchange = self[upstream].exchange
        guard !exchange.isNone, self[upstream].isUp, !self[upstream].stream.isClosed,
            let session = session(of: upstream)
        else { return }
        if !self[upstream].output.isEmpty {
            unsafe session.send(self[upstream].stream.id, self[upstream].output.bytes)
            self[upstream].output.release()
        }
        if exchanges[exchange].body.isComplete, !self[upstream].stream.hasEndedRequest {
            self[upstream].stream.hasEndedRequest = true
            unsafe session.end(self[upstream].stream.id, trailers: exchanges[exchange].trailers.forwarded.bytes)
        }
        markDirty(self[upstream].stream.connection, &context)
        if !exchanges[exchange].body.isComplete { exchanges[exchange].armResponseTimeout(upstream, &self, &context) }
        if session.unsent(self[upstream].stream.id) > Watermark.streamHigh {
            downstreams[exchanges[exchange].downstream].isPaused = true
        }
    }

    /// Sending to the upstream failed; its response, if any, is read first.
    mutating func sendFailed(
        _ upstream: Handle<UpstreamConnection>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        self[upstream].output.removeAll()
        self[upstream].transport.isReadClosed = true
        let exchange = self[upstream].exchange
        exchanges[exchange].forwarding.head.sent = exchanges[exchange].forwarding.head.count
        markReady(upstream, &context)
    }

    /// Detaches the upstream connection from the exchange, and returns it to the pool if it can be reused.
    @inline(__always)
    mutating func detach(
        _ upstream: Handle<UpstreamConnection>, of exchange: Handle<Exchange>, _ exchanges: inout Exchanges,
        _ context: inout LoopContext
    ) {
        exchanges[exchange].upstream = .none
        exchanges[exchange].forwarding.stopCarrying()
        self[upstream].exchange = .none
        self[upstream].served &+= 1
        directory.ended(self[upstream].endpoint)
        // A stream carries one request.
        let isReusable =
            self[upstream].kind == .http1
            && self[upstream].response.canBeReused(
                isBodyComplete: exchanges[exchange].body.isComplete,
                isHeadSent: exchanges[exchange].forwarding.head.isSent,
                unsent: unsent(upstream), isReadClosed: self[upstream].transport.isReadClosed)
        if isReusable { returnToPool(upstream, &context) } else { close(upstream, &context) }
    }
}
