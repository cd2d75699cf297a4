private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletResponder

/// Listeners, and what they do not admit.
extension DownstreamConnections {
    /// Starts accepting from a listener; the loop now owns its descriptor.
    mutating func listen(_ listener: ListenerSocket, _ context: inout LoopContext) throws(IOError) {
        try listener.register(with: context.poller)
        acceptor.listeners.append(listener)
    }

    mutating func stopAccepting(_ listener: ListenerSocket, _ context: inout LoopContext) {
        context.poller.remove(listener.fd)
        // Whoever accepts from the socket next finds its options unchanged.
        if acceptor.deferAccept.isActive { Socket.setDeferAccept(listener.fd, false) }
        _ = CLinux.close(listener.fd)
        acceptor.listeners.removeAll { $0.id == listener.id }
    }

    /// Updates listeners when the accept policy has changed, or may have.
    mutating func updateDeferAccept(_ context: inout LoopContext) {
        guard acceptor.deferAccept.evaluate(at: context.now) else { return }
        // A connection that the kernel holds back is lost when the socket is closed, which the next process on the port
        // cannot prevent.
        for listener in acceptor.listeners where !listener.sharesPort {
            Socket.setDeferAccept(listener.fd, acceptor.deferAccept.isActive)
        }
    }

    /// Sends GOAWAY on the HTTP/2 connections of some listeners (RFC 9113 §6.8), and closes idle HTTP/1 connections
    /// after a moment, for requests in flight.
    mutating func drain(of isClosing: (Int32) -> Bool, _ context: inout LoopContext) {
        for index in 0..<all.end {
            guard let downstream = all.handle(at: index), isClosing(self[downstream].origin.listener)
            else {
                continue
            }
            if let streams = self[downstream].streams {
                streams.session.goAway()
                markDirty(downstream, &context)
                if streams.slots.isEmpty {
                    arm(downstream, at: context.now &+ DownstreamConnections.drainIdleTimeout, &context)
                }
            } else if self[downstream].phase == .head, !self[downstream].isStream,
                !self[downstream].reader.isReceivingHead,
                self[downstream].transport.output.isEmpty
            {
                let timeout =
                    self[downstream].reader.requests == 0
                    ? DownstreamConnections.drainFreshTimeout
                    : DownstreamConnections.drainIdleTimeout
                arm(downstream, at: context.now &+ timeout, &context)
            }
        }
    }

    /// Out of descriptors: uses the reserved one to reject a connection, or the listener would stay readable forever.
    /// - Returns: whether one was accepted for that.
    mutating func rejectOne(_ listener: ListenerSocket, _ context: inout LoopContext) -> Bool {
        acceptor.reservedDescriptor.release()
        let accepted = Socket.accept(listener.fd)
        if let (fd, _) = accepted {
            context.counters.connections.refused &+= 1
            rejectConnection(fd, listener.rules, &context)
        }
        acceptor.reservedDescriptor.acquire()
        return accepted != nil
    }

    /// Nothing can be accepted, not even to reject it: listeners that stay readable would keep the loop busy.
    mutating func pauseAccepting(_ context: inout LoopContext) {
        acceptor.pause(until: context.now &+ Acceptor.pause)
        for listener in acceptor.listeners { context.poller.remove(listener.fd) }
    }

    /// Accepts again after a pause.
    mutating func resumeAccepting(_ context: inout LoopContext) {
        guard acceptor.endPause(at: context.now) else { return }
        for listener in acceptor.listeners {
            // One that was added meanwhile is registered.
            context.poller.remove(listener.fd)
            if (try? listener.register(with: context.poller)) == nil {
                acceptor.pause(until: context.now &+ Acceptor.pause)
            }
        }
    }

    /// Over the limit: responds with 503 where the client can read it, and closes the connection immediately.
    mutating func rejectConnection(_ fd: Int32, _ rules: ListenerRules, _ context: inout LoopContext) {
        guard !rules.isSecure else {
            _ = CLinux.close(fd)
            return
        }
        var out = ByteBuffer(capacity: 512)
        context.logs.requestIDs.next()
        unsafe Failure.tooManyConnections.write(
            into: &out, requestID: context.logs.requestIDs.text.bytes, date: context.clock.dateText, close: true)
        let bytes = unsafe out.bytes
        _ = unsafe CLinux.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        // With an unread request, closing would discard the response.
        _ = context.scratch.receiveBuffer.receive(from: fd)
        _ = CLinux.close(fd)
    }

    /// Applies the client address of the header.
    ///
    /// - Returns: `false` where that address has too many connections.
    mutating func applyProxyAddress(
        _ downstream: Handle<DownstreamConnection>, _ address: ProxyHeader.Address, _ context: inout LoopContext
    ) -> Bool {
        let octets = address.bytes
        acceptor.release(self[downstream].origin.peerBytes, self[downstream].origin.admission)
        let isTrusted = context.snapshot.trustedProxies.contains { $0.contains(octets) }
        self[downstream].origin.admission = acceptor.admit(
            octets, isDivided: !isTrusted, limits: context.snapshot.limits)
        guard self[downstream].origin.admission.isAdmitted else {
            context.counters.connections.refused &+= 1
            return false
        }
        self[downstream].origin.peerBytes = octets
        self[downstream].origin.address = DownstreamAddress(
            bytes: octets, text: AddressText(SocketEndpoint.text(of: octets).utf8),
            isTrusted: isTrusted, port: address.port)
        return true
    }
}
