internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletHTTP
internal import MartletRouter

/// Upgrades (RFC 9110 §7.8): from the offer in a request, which is judged as every other request is, to the upstream's
/// 101 (Switching Protocols), which alone makes a tunnel of the two connections.
///
/// Until then nothing that a client sends behind its head leaves the gateway: an upstream that answers something else
/// would read it as the next request on its connection, one that nobody has judged.
extension Worker {
    /// Whether the exchange has become a tunnel.
    @inline(__always)
    func isTunnel(_ exchange: Int32) -> Bool {
        guard exchange >= 0, exchanges[exchange].tunnel >= 0 else { return false }
        return tunnels[exchanges[exchange].tunnel].phase != .asked
    }

    // MARK: The offer

    /// Judges what a request wants to upgrade to.
    ///
    /// A request that offers several protocols is held to the first that its route allows.
    ///
    /// - Returns: whether the request goes on, as an upgrade or, where it offers only what is ignored, as any other.
    mutating func admitsUpgrade(_ exchange: Int32, route: Int, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        // The head may have been here before, while its credential was not known and under another configuration.
        releaseTunnel(of: exchange)
        var list = UpgradeList(head.upgrade)
        var isIgnored = true
        var chosen: ByteRange?
        while chosen == nil, let offered = unsafe list.next(bytes.span) {
            // RFC 9113 §3.1: what it was for is done with prior knowledge.
            guard unsafe !isSame(bytes[offered], "h2c") else { continue }
            isIgnored = false
            if unsafe allows(bytes[offered], on: route) { chosen = offered }
        }
        if isIgnored, !list.isMalformed { return true }
        let refusal = unsafe list.isMalformed ? .upgradeMalformed : ask(for: chosen, exchange, route, bytes)
        guard let refusal else { return true }
        counters.upgradesRefused &+= 1
        releaseTunnel(of: exchange)
        refuse(exchange, refusal)
        return false
    }

    /// Whether a route allows a protocol: by its name, or by its name and version.
    private func allows(_ offered: UnsafeBufferPointer<UInt8>, on route: Int) -> Bool {
        guard snapshot.facts[route].tunnels.areAllowed else { return false }
        let name = unsafe offered.prefix { $0 != UInt8(ascii: "/") }
        return snapshot.routes.routes[route].upgrade.protocols.contains { allowed in
            unsafe isSame(offered, allowed) || isSame(UnsafeBufferPointer(rebasing: name), allowed)
        }
    }

    private func isSame(_ bytes: UnsafeBufferPointer<UInt8>, _ name: String) -> Bool {
        unsafe bytes.elementsEqual(name.utf8) { lowercased($0) == lowercased($1) }
    }

    private func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    /// Notes what the request asks for.
    /// - Returns: why it may not, if so.
    private mutating func ask(
        for offered: ByteRange?, _ exchange: Int32, _ route: Int, _ bytes: UnsafeBufferPointer<UInt8>
    ) -> Failure? {
        guard let offered else { return .upgradeRefused }
        guard head.method == .get, head.framing.isEmpty else { return .upgradeMalformed }
        let tunnel = tunnels.take()
        tunnels[tunnel].ask()
        exchanges[exchange].tunnel = tunnel
        unsafe tunnels[tunnel].name.append(bytes[offered])
        tunnels[tunnel].idlePatience = snapshot.facts[route].tunnels.idlePatience
        tunnels[tunnel].endsAt = snapshot.facts[route].tunnels.longestAge
        tunnels[tunnel].isWebSocket = unsafe isSame(bytes[offered], "websocket")
        return unsafe tunnels[tunnel].isWebSocket ? askForWebSocket(tunnel, bytes) : nil
    }

    /// RFC 6455 §4.2.1; a stream of HTTP/2 has no key (RFC 8441 §5), the head made of it has one of the gateway's.
    private mutating func askForWebSocket(_ tunnel: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> Failure? {
        var (keys, versions) = (0, 0)
        var key = ByteRange.empty
        var version = ByteRange.empty
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            // To somebody who folds names, another spelling would be another key.
            switch unsafe field.known == .other ? KnownField.lookAlike(bytes.span, field.name) : field.known {
            case .secWebSocketKey: (keys, key) = (keys + 1, field.value)
            case .secWebSocketVersion: (versions, version) = (versions + 1, field.value)
            default: break
            }
        }
        guard versions == 1, unsafe isSame(bytes[version], "13") else { return .webSocketVersion }
        guard keys == 1, unsafe WebSocketKey.isValid(bytes.span, key) else { return .upgradeMalformed }
        let digest = SHA1.digest(unsafe Array(bytes[key]) + WebSocketKey.suffix)
        tunnels[tunnel].accept.append(text: Base64.encode(digest, padding: .required))
        return nil
    }

    // MARK: The upstream

    /// Whether a connection to the endpoint that was chosen can be handed over.
    func carriesUpgrades(_ exchange: Int32) -> Bool {
        switch upstreams.endpoints[Int(exchanges[exchange].endpoint)].address {
        case .http: true
        case .https, .unix: upstreams.groups[Int(exchanges[exchange].upstream)].upstream.carriesUpgrades
        case .h2c, .echo: false
        }
    }

    /// Writes the offer into the upstream's head.
    func writeUpgrade(_ exchange: Int32, into out: inout ByteBuffer) {
        let tunnel = exchanges[exchange].tunnel
        out.append("Connection: Upgrade\r\nUpgrade: ")
        unsafe out.append(unsafe tunnels[tunnel].name.bytes)
        out.append("\r\n")
    }

    /// The upstream has switched: from here on bytes pass both ways.
    mutating func openTunnel(_ bytes: UnsafeBufferPointer<UInt8>, _ link: Int32) {
        let exchange = links[link].exchange
        let tunnel = exchanges[exchange].tunnel
        let client = exchanges[exchange].client
        guard exchanges[exchange].headSent == exchanges[exchange].head.count, unsafe isAnswered(tunnel, bytes) else {
            return answerInvalid(link, "upstream.unexpected_upgrade")
        }
        upstreams.succeeded(links[link].endpoint)
        unsafe writeSwitch(exchange, bytes)
        exchanges[exchange].status = 101
        exchanges[exchange].hasResponseStarted = true
        exchanges[exchange].closesClient = true
        // What follows the head is no body: its end is that of the connection.
        exchanges[exchange].isRequestComplete = false
        exchanges[exchange].head.release()
        exchanges[exchange].headSent = 0
        links[link].phase = .body
        links[link].framing = .untilClose
        links[link].keepsAlive = false
        arm(link: link, at: .max)
        clients[client].awaitsProbe = false
        arm(client: client, at: .max)
        let hasExtensions = answer.fields.has(.secWebSocketExtensions)
        tunnels[tunnel].fromClient.hasExtensions = hasExtensions
        tunnels[tunnel].fromUpstream.hasExtensions = hasExtensions
        tunnels[tunnel].phase = .open
        tunnels[tunnel].openedAt = now
        tunnels[tunnel].usedAt = now
        tunnels[tunnel].endsAt = now &+ tunnels[tunnel].endsAt
        tunnels[tunnel].idlePatience = min(tunnels[tunnel].idlePatience, exchanges[exchange].idlePatience)
        counters.tunnelsOpened &+= 1
        counters.tunnelsOpen &+= 1
        markReady(client: client)
    }

    /// Whether a 101 is the answer to what was asked: that protocol and no other, and for a WebSocket the digest of its
    /// key (RFC 6455 §4.1).
    private func isAnswered(_ tunnel: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let (name, switched) = unsafe (tunnels[tunnel].name.bytes, bytes[answer.upgrade])
        guard unsafe name.elementsEqual(switched, by: { lowercased($0) == lowercased($1) }) else { return false }
        var accepts = 0
        for index in 0..<answer.fields.count {
            switch answer.fields[index].known {
            case .contentLength, .transferEncoding: return false
            case .secWebSocketAccept:
                accepts += 1
                let accept = unsafe bytes[answer.fields[index].value]
                let isRight = unsafe accept.elementsEqual(tunnels[tunnel].accept.bytes)
                guard isRight || !tunnels[tunnel].isWebSocket else { return false }
            default: break
            }
        }
        return accepts == 1 || !tunnels[tunnel].isWebSocket
    }

    private mutating func writeSwitch(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        staging.append("HTTP/1.1 101 Switching Protocols\r\n")
        unsafe copyEach(bytes, isStrict: isStrict(exchange), isInterim: true)
        staging.append("Connection: Upgrade\r\nUpgrade: ")
        unsafe staging.append(unsafe tunnels[exchanges[exchange].tunnel].name.bytes)
        staging.append("\r\nX-Request-Id: ")
        unsafe staging.append(unsafe exchanges[exchange].texts.requestID)
        staging.append("\r\n\r\n")
        sendHead(exchange, ends: false)
    }
}
