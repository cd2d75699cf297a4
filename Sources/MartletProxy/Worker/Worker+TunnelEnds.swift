internal import MartletCore
internal import MartletHTTP

/// How the gateway itself ends a tunnel: with Close frames where it is a WebSocket, else by a cut.
extension Worker {
    /// How long the end of a frame that is under way is waited for.
    private static let framePatience: Int64 = 400_000_000
    /// How long sides that were told are waited for.
    static let closePatience: Int64 = 1_000_000_000
    /// How long an upstream whose client has left is.
    static let leftPatience: Int64 = 500_000_000
    /// How many tunnels a drain ends at once.
    private static let drainShare = 64

    /// Begins the end of a tunnel.
    mutating func endTunnel(_ exchange: Int32, _ farewell: Farewell) {
        let tunnel = exchanges[exchange].tunnel
        guard tunnels[tunnel].phase == .open else { return }
        tunnels[tunnel].phase = .closing
        tunnels[tunnel].farewell = farewell
        if let reason = farewell.reason { exchanges[exchange].reason = counters.reason(reason) }
        guard tunnels[tunnel].isWebSocket else { return cutTunnel(exchange) }
        // A side that has had a Close frame from the other gets no second one.
        tunnels[tunnel].client.isTold = tunnels[tunnel].fromUpstream.hasClosed || tunnels[tunnel].client.isShut
        tunnels[tunnel].client.isOwedClose = !tunnels[tunnel].client.isTold
        tunnels[tunnel].upstream.isTold = tunnels[tunnel].fromClient.hasClosed || tunnels[tunnel].upstream.isShut
        tunnels[tunnel].upstream.isOwedClose = !tunnels[tunnel].upstream.isTold
        tunnels[tunnel].deadline = now &+ Worker.framePatience
        let generation = exchanges[exchange].generation
        if tunnels[tunnel].upstream.isOwedClose { tellUpstream(exchange) }
        if exchanges[exchange].link >= 0 { flush(link: exchanges[exchange].link) }
        if exchanges.holds(exchange, generation), tunnels[tunnel].client.isOwedClose { tellClient(exchange) }
        if exchanges.holds(exchange, generation) { settleTunnel(exchange) }
    }

    /// Sends the client its Close frame, if the upstream's last frame is whole.
    mutating func tellClient(_ exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        guard tunnels[tunnel].fromUpstream.isBetweenFrames else { return }
        tunnels[tunnel].client.isOwedClose = false
        tunnels[tunnel].client.isTold = true
        wait(tunnel)
        var frame = ByteBuffer(capacity: 64)
        frame.append(webSocketClose: tunnels[tunnel].farewell.status, tunnels[tunnel].farewell.text, mask: nil)
        exchanges[exchange].bytesOut &+= frame.count
        unsafe write(unsafe frame.bytes, to: exchanges[exchange].client)
    }

    /// Puts the upstream's Close frame behind what is to be sent to it, if the client's last frame is whole.
    mutating func tellUpstream(_ exchange: Int32) {
        let (tunnel, link) = (exchanges[exchange].tunnel, exchanges[exchange].link)
        guard tunnels[tunnel].fromClient.isBetweenFrames, link >= 0 else { return }
        tunnels[tunnel].upstream.isOwedClose = false
        tunnels[tunnel].upstream.isTold = true
        wait(tunnel)
        links[link].output.append(
            webSocketClose: tunnels[tunnel].farewell.upstreamStatus, tunnels[tunnel].farewell.text,
            mask: .random(in: .min ... .max))
    }

    /// Both sides were told: what they answer is waited for.
    private mutating func wait(_ tunnel: Int32) {
        guard !tunnels[tunnel].client.isOwedClose, !tunnels[tunnel].upstream.isOwedClose else { return }
        tunnels[tunnel].deadline = now &+ Worker.closePatience
    }

    /// Both sides are done.
    mutating func finishTunnel(_ exchange: Int32) {
        let client = exchanges[exchange].client
        dropLink(of: exchange)
        // A client that may still be sending could lose its last frame to a reset.
        exchanges[exchange].isRequestComplete = clients[client].hasEnded
        complete(exchange)
    }

    /// Ends a tunnel in a way that no side can take for an orderly end.
    private mutating func cutTunnel(_ exchange: Int32) {
        let reason = tunnels[exchanges[exchange].tunnel].farewell.reason ?? "tunnel.cut"
        fail(exchange, .upstreamInvalid(reason))
    }

    /// Looks after a tunnel: its age, its silence, and an end that takes too long.
    mutating func watchTunnel(_ exchange: Int32, endsForDrain: inout Int) {
        let tunnel = exchanges[exchange].tunnel
        if now >= tunnels[tunnel].deadline { return tunnelTimedOut(exchange) }
        guard tunnels[tunnel].phase == .open else { return }
        if now >= tunnels[tunnel].endsAt {
            endTunnel(exchange, .aged)
        } else if now &- tunnels[tunnel].usedAt >= tunnels[tunnel].idlePatience {
            endTunnel(exchange, .idle)
        } else if endsForDrain > 0, tunnels[tunnel].isWebSocket {
            endsForDrain &-= 1
            endTunnel(exchange, .draining)
        }
    }

    /// How many WebSockets are ended at this time because the gateway is stopping: few enough that not all of their
    /// clients come back at once, enough to be done in the first half of the drain.
    var tunnelsToDrain: Int {
        guard isDraining else { return 0 }
        let looks = max((drainDeadline &- now) / (2 &* Worker.watchInterval), 1)
        return max(Worker.drainShare, Int(Int64(counters.tunnelsOpen) / looks))
    }

    /// An end has taken long enough: whoever was told and has all that was sent is let go, others are cut.
    private mutating func tunnelTimedOut(_ exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        let client = exchanges[exchange].client
        guard hasTakenEverything(client) else {
            // One that takes bytes gets the rest of what its upstream said before it left.
            let isTaking = now &- clients[client].takenAt < Worker.closePatience
            if isTaking, tunnels[tunnel].phase == .open { return }
            return cutTunnel(exchange)
        }
        tunnels[tunnel].client.isOwedClose ? cutTunnel(exchange) : finishTunnel(exchange)
    }

    /// How long a tunnel's handshake took, in microseconds: what it has in common with other answers.
    func openingTime(ofTunnel exchange: Int32) -> Int {
        Int((tunnels[exchanges[exchange].tunnel].openedAt &- exchanges[exchange].started) / 1000)
    }

    /// The exchange ends, and its tunnel with it.
    mutating func releaseTunnel(of exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        guard tunnel >= 0 else { return }
        if tunnels[tunnel].phase != .asked {
            counters.tunnelsOpen &-= 1
            counters.countTunnelEnd(reason: exchanges[exchange].reason)
        }
        exchanges[exchange].tunnel = -1
        tunnels[tunnel].close()
        tunnels.give(tunnel)
    }
}
