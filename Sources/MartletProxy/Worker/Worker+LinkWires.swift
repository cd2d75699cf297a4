private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletTLS

/// What lies between an upstream's socket and its HTTP: the PROXY protocol and TLS.
extension Worker {
    // MARK: Before the first request

    /// Whether something is said before the first request.
    func needsGreeting(_ link: Int32) -> Bool {
        links[link].isSecure || upstreams.endpoints[Int(links[link].endpoint)].wire.sendsProxyHeader
    }

    /// Connected: says whose connection it is, and begins the handshake.
    mutating func greet(_ link: Int32) {
        let endpoint = Int(links[link].endpoint)
        if upstreams.endpoints[endpoint].wire.sendsProxyHeader { writeProxyHeader(link) }
        guard links[link].isSecure else {
            sendWire(link)
            return linkReady(link)
        }
        guard let context = upstreams.endpoints[endpoint].wire.tls else {
            return connectFailed(link, .upstreamUnavailable("tls.set_up_failed"))
        }
        do throws(TLSError) {
            links[link].engine = try context.makeEngine(serverName: upstreams.endpoints[endpoint].wire.serverName)
            try links[link].engine?.start()
        } catch {
            return connectFailed(link, .upstreamUnavailable(error.code))
        }
        links[link].phase = .handshake
        links[link].engine?.takeCiphertext(into: &links[link].wire)
        sendWire(link)
    }

    /// The client that the connection is for; it carries nobody else's requests.
    private mutating func writeProxyHeader(_ link: Int32) {
        let exchange = links[link].exchange
        guard exchange >= 0 else { return ProxyHeader.write(client: nil, server: nil, into: &links[link].wire) }
        let client = exchanges[exchange].client
        let address = clients[client].address
        // The other end is the one that the client has connected to.
        let socket = clients[clients[client].isStream ? clients[client].connection : client].fd
        let server = Socket.localAddress(socket)
        ProxyHeader.write(
            client: address.isUnix ? nil : ProxyHeader.Address(bytes: address.bytes, port: address.port),
            server: server.flatMap { place in
                place.isUnix ? nil : ProxyHeader.Address(bytes: place.addressBytes, port: place.port)
            }, into: &links[link].wire)
    }

    // MARK: Reading

    /// Bytes have come that are not plain HTTP/1.
    mutating func unwrap(_ link: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard links[link].isSecure else { return unsafe useAnswerFrames(link, bytes) }
        let generation = links[link].generation
        var opened = ByteBuffer()
        swap(&opened, &plain)
        opened.removeAll()
        let failure = unsafe Worker.open(bytes, &links[link].engine, into: &opened)
        swap(&opened, &plain)
        if let failure {
            links[link].engine?.takeCiphertext(into: &links[link].wire)
            sendWire(link)
            guard links.holds(link, generation) else { return }
            return linkBroke(link, failure.code)
        }
        let waiting = links[link].wire.count
        links[link].engine?.takeCiphertext(into: &links[link].wire)
        if links[link].wire.count > waiting { sendWire(link) }
        if links[link].phase == .handshake, links[link].engine?.isEstablished == true { handshakeDone(link) }
        guard links.holds(link, generation) else { return }
        let isOver = links[link].engine?.isPeerClosed == true
        // What comes before a question is nobody's answer.
        if links[link].phase == .idle, isOver || !plain.isEmpty { return closeLink(link) }
        if !plain.isEmpty {
            unsafe links[link].kind == .http2 ? useAnswerFrames(link, plain.bytes) : answered(link, plain.bytes)
        }
        guard isOver, links.holds(link, generation), links[link].phase != .idle, !links[link].isPaused else { return }
        linkEnded(link)
    }

    private mutating func handshakeDone(_ link: Int32) {
        let speaksHTTP2 = links[link].engine?.applicationProtocol == .http2
        guard speaksHTTP2 == (links[link].kind == .http2) else {
            return connectFailed(link, .upstreamUnavailable("upstream.protocol_not_offered"))
        }
        linkReady(link)
    }

    // MARK: Writing

    /// Sends what waits on a link that is not plain HTTP/1.
    mutating func flushWrapped(_ link: Int32) {
        switch links[link].kind {
        case .stream: flushStream(link)
        case .http2: writeLinkFrames(link)
        case .http1:
            let (generation, exchange) = (links[link].generation, links[link].exchange)
            guard links[link].isUp, exchange >= 0 else { return sendWire(link) }
            // Where the kernel has taken everything, no event asks for what was not encrypted yet.
            repeat {
                guard encryptRequest(link) else { return }
                sendWire(link)
            } while links[link].wire.isEmpty && !links[link].output.isEmpty
            if isTunnel(exchange), unsent(link) == 0 { settleTunnel(exchange) }
            guard links.holds(link, generation), links[link].exchange == exchange else { return }
            if !exchanges[exchange].isRequestComplete { armAnswer(link) }
            resumeClient(of: exchange)
        }
    }

    /// Encrypts the head first, then the body.
    private mutating func encryptRequest(_ link: Int32) -> Bool {
        // What the kernel does not take is not made more of.
        guard links[link].wire.count < Worker.highWater else { return true }
        let exchange = links[link].exchange
        let head = unsafe UnsafeBufferPointer(rebasing: exchanges[exchange].head.bytes[exchanges[exchange].headSent...])
        do throws(TLSError) {
            if head.count > 0 { try unsafe links[link].engine?.send(head) }
            if !links[link].output.isEmpty { try unsafe links[link].engine?.send(links[link].output.bytes) }
        } catch {
            sendFailed(link)
            return false
        }
        exchanges[exchange].headSent = exchanges[exchange].head.count
        links[link].output.release()
        links[link].engine?.takeCiphertext(into: &links[link].wire)
        return true
    }

    /// Gives the kernel what is ready for it.
    mutating func sendWire(_ link: Int32) {
        guard !links[link].wire.isEmpty else { return }
        let bytes = unsafe links[link].wire.bytes
        let sent = unsafe CLinux.send(links[link].fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if sent < 0 {
            let reason = martlet_errno()
            if reason != EAGAIN && reason != EINTR {
                links[link].wire.removeAll()
                links[link].hasEnded = true
                markReady(link: link)
            }
            return
        }
        links[link].wire.consume(sent)
        if links[link].wire.isEmpty { links[link].wire.release() }
    }
}
