private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletTLS

/// Tunnels: bytes both ways, each side held back while the other is slow.
extension Worker {
    // MARK: From the client

    /// Takes what a client sends through its tunnel.
    /// - Returns: how many bytes were used: all of them.
    mutating func tunnelUp(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Int {
        let generation = exchanges[exchange].generation
        let tunnel = exchanges[exchange].tunnel
        tunnels[tunnel].usedAt = now
        let broke = unsafe passUp(bytes, exchange)
        if let broke { return endTunnel(exchange, broke, bytes.count) }
        if exchanges[exchange].link >= 0 { flush(link: exchanges[exchange].link) }
        if exchanges.holds(exchange, generation) { settleTunnel(exchange) }
        return bytes.count
    }

    private mutating func endTunnel(_ exchange: Int32, _ farewell: Farewell, _ used: Int) -> Int {
        endTunnel(exchange, farewell)
        return used
    }

    /// - Returns: why the tunnel has to end, if so.
    private mutating func passUp(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Farewell? {
        let tunnel = exchanges[exchange].tunnel
        guard tunnels[tunnel].isWebSocket else {
            unsafe send(up: bytes, exchange)
            return nil
        }
        var offset = 0
        while true {
            let isOwed = tunnels[tunnel].upstream.isOwedClose
            switch unsafe tunnels[tunnel].fromClient.next(bytes.span, from: &offset, stopsBetweenFrames: isOwed) {
            case .pass(let range): unsafe send(up: bytes[range], exchange)
            case .passHeader:
                let link = exchanges[exchange].link
                guard link >= 0, !tunnels[tunnel].upstream.isTold else { continue }
                exchanges[exchange].bytesIn &+= tunnels[tunnel].fromClient.headerBytes
                tunnels[tunnel].fromClient.appendHeader(to: &links[link].output)
            case .needMore, .closed: return nil
            case .violation: return tunnels[tunnel].phase == .open ? .clientViolation : nil
            }
            if isOwed { tellUpstream(exchange) }
        }
    }

    private mutating func send(up bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) {
        let link = exchanges[exchange].link
        guard link >= 0, !tunnels[exchanges[exchange].tunnel].upstream.isTold else { return }
        exchanges[exchange].bytesIn &+= bytes.count
        unsafe links[link].output.append(bytes)
        if unsent(link) > Worker.highWater { clients[exchanges[exchange].client].isPaused = true }
    }

    // MARK: From the upstream

    /// Takes what an upstream sends through its tunnel.
    /// - Returns: how many bytes were used: all of them.
    mutating func tunnelDown(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Int {
        let generation = exchanges[exchange].generation
        let tunnel = exchanges[exchange].tunnel
        tunnels[tunnel].usedAt = now
        let broke = unsafe passDown(bytes, exchange)
        guard exchanges.holds(exchange, generation) else { return bytes.count }
        sendStaging(exchange)
        guard exchanges.holds(exchange, generation) else { return bytes.count }
        if let broke { return endTunnel(exchange, broke, bytes.count) }
        if tunnels[tunnel].client.isOwedClose { tellClient(exchange) }
        if exchanges.holds(exchange, generation) { settleTunnel(exchange) }
        return bytes.count
    }

    private mutating func passDown(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Farewell? {
        let generation = exchanges[exchange].generation
        let tunnel = exchanges[exchange].tunnel
        guard tunnels[tunnel].isWebSocket else {
            unsafe passAnswer(bytes, exchange)
            return nil
        }
        var offset = 0
        while exchanges.holds(exchange, generation) {
            let isOwed = tunnels[tunnel].client.isOwedClose
            // What stands behind the end of the frame is not for the client any more.
            if isOwed, offset > 0, tunnels[tunnel].fromUpstream.isBetweenFrames { return nil }
            switch unsafe tunnels[tunnel].fromUpstream.next(bytes.span, from: &offset, stopsBetweenFrames: isOwed) {
            case .pass(let range):
                if !tunnels[tunnel].client.isTold { unsafe passAnswer(bytes[range], exchange) }
            case .passHeader:
                guard !tunnels[tunnel].client.isTold else { continue }
                exchanges[exchange].bytesOut &+= tunnels[tunnel].fromUpstream.headerBytes
                tunnels[tunnel].fromUpstream.appendHeader(to: &staging)
            case .needMore, .closed: return nil
            case .violation: return tunnels[tunnel].phase == .open ? .upstreamViolation : nil
            }
        }
        return nil
    }

    // MARK: Ends of streams

    /// The client has sent its last byte; what came before it has been taken.
    mutating func clientEnded(tunnelOf exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        guard !tunnels[tunnel].client.hasEnded else { return }
        tunnels[tunnel].client.hasEnded = true
        noteLeaving(exchange, "tunnel.client_left")
        hasten(tunnel, Worker.leftPatience)
        settleTunnel(exchange)
    }

    /// The upstream has.
    mutating func upstreamEnded(tunnelOf exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        guard !tunnels[tunnel].upstream.hasEnded else { return }
        tunnels[tunnel].upstream.hasEnded = true
        noteLeaving(exchange, "tunnel.upstream_left")
        hasten(tunnel, Worker.closePatience)
        settleTunnel(exchange)
    }

    /// The log tells who left a WebSocket without a word.
    private mutating func noteLeaving(_ exchange: Int32, _ reason: ErrorCode) {
        let tunnel = exchanges[exchange].tunnel
        guard tunnels[tunnel].isWebSocket, tunnels[tunnel].phase == .open, exchanges[exchange].reason == 0,
            !tunnels[tunnel].fromClient.hasClosed, !tunnels[tunnel].fromUpstream.hasClosed
        else { return }
        exchanges[exchange].reason = counters.reason(reason)
    }

    /// A WebSocket of which one side is gone has nothing more to say: the other side's end is not waited for long.
    private mutating func hasten(_ tunnel: Int32, _ patience: Int64) {
        guard tunnels[tunnel].isWebSocket else { return }
        tunnels[tunnel].deadline = min(tunnels[tunnel].deadline, now &+ patience)
    }

    /// Goes on with a tunnel's end where something has ended or has been sent: passes ends of streams on, and is done
    /// when both sides are.
    mutating func settleTunnel(_ exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        let (client, link) = (exchanges[exchange].client, exchanges[exchange].link)
        guard link >= 0 else { return }
        if tunnels[tunnel].fromClient.hasClosed, tunnels[tunnel].fromUpstream.hasClosed {
            // All is said; it is for the upstream to end the connection (RFC 6455 §7.1.1).
            tunnels[tunnel].phase = .closing
            hasten(tunnel, Worker.closePatience)
        }
        let isClientDone = isDone(tunnels[tunnel].client, hasClosed: tunnels[tunnel].fromClient.hasClosed)
        let isUpstreamDone = isDone(tunnels[tunnel].upstream, hasClosed: tunnels[tunnel].fromUpstream.hasClosed)
        let isOutDown = hasTakenEverything(client)
        let isOutUp = unsent(link) == 0
        if isOutUp, tunnels[tunnel].client.hasEnded || (tunnels[tunnel].upstream.isTold && isUpstreamDone) {
            shut(link: link, of: tunnel)
        }
        if isOutDown, tunnels[tunnel].upstream.hasEnded || (tunnels[tunnel].client.isTold && isClientDone) {
            shut(client: client, of: tunnel)
        }
        if isClientDone, isUpstreamDone, isOutUp, isOutDown { finishTunnel(exchange) }
    }

    /// Whether nothing more is to be waited for from a side.
    private func isDone(_ side: Tunnel.Side, hasClosed: Bool) -> Bool {
        side.hasEnded || (side.isTold && hasClosed)
    }

    private mutating func shut(link: Int32, of tunnel: Int32) {
        guard !tunnels[tunnel].upstream.isShut else { return }
        tunnels[tunnel].upstream.isShut = true
        endOutput(link: link)
    }

    private mutating func shut(client: Int32, of tunnel: Int32) {
        guard !tunnels[tunnel].client.isShut else { return }
        tunnels[tunnel].client.isShut = true
        endOutput(client: client)
    }

    /// Says that no more bytes come, and goes on reading.
    private mutating func endOutput(link: Int32) {
        links[link].engine?.close()
        links[link].engine?.takeCiphertext(into: &links[link].wire)
        sendWire(link)
        _ = shutdown(links[link].fd, Int32(SHUT_WR))
    }

    /// The same for a client.
    private mutating func endOutput(client: Int32) {
        if clients[client].isStream { return endStream(clients[client].exchange) }
        sayGoodbye(client)
        _ = shutdown(clients[client].fd, Int32(SHUT_WR))
    }
}
