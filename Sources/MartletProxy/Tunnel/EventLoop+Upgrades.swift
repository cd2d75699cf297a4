internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletHTTP
internal import MartletRouter

/// Upgrades (RFC 9110 §7.8): from the offer in a request, which is authorized like any other request, to the upstream's
/// 101 (Switching Protocols), which alone turns the two connections into a tunnel.
///
/// Until then nothing that a client sends after its head is forwarded: an upstream that responds otherwise would read
/// it as the next request, one that was never authorized.
extension EventLoop {
    /// Whether the exchange is a tunnel.
    @inline(__always)
    func isTunnel(_ exchange: Int32) -> Bool {
        guard exchange >= 0, exchanges[exchange].tunnel >= 0 else { return false }
        return tunnels[exchanges[exchange].tunnel].phase != .requested
    }

    // MARK: The offer

    /// Checks what a request wants to upgrade to; of several protocols the first that the route allows is used.
    ///
    /// - Returns: whether the request continues, as an upgrade or, where it offers only what is ignored, as any other.
    mutating func checkUpgrade(_ exchange: Int32, route: Int, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        // The head may be processed again, after its credential was verified and under another configuration.
        releaseTunnel(of: exchange)
        var list = UpgradeList(head.upgrade)
        var isIgnored = true
        var chosen: ByteRange?
        while chosen == nil, let offered = unsafe list.next(bytes.span) {
            // RFC 9113 §3.1: obsolete; HTTP/2 in clear text uses prior knowledge.
            guard unsafe !isSame(bytes[offered], "h2c") else { continue }
            isIgnored = false
            if unsafe allows(bytes[offered], on: route) { chosen = offered }
        }
        if isIgnored, !list.isMalformed { return true }
        let rejection =
            unsafe list.isMalformed
            ? .upgradeMalformed
            : requestUpgrade(for: chosen, exchange, route, bytes)
        guard let rejection else { return true }
        counters.upgradesRefused &+= 1
        releaseTunnel(of: exchange)
        reject(exchange, rejection)
        return false
    }

    /// Whether a route allows a protocol: by its name, or by its name and version.
    private func allows(_ offered: UnsafeBufferPointer<UInt8>, on route: Int) -> Bool {
        guard snapshot.compiledRoutes[route].tunnels.areAllowed else { return false }
        let name = unsafe offered.prefix { $0 != UInt8(ascii: "/") }
        return snapshot.routes.routes[route].upgrade.protocols.contains { allowed in
            unsafe isSame(offered, allowed) || isSame(UnsafeBufferPointer(rebasing: name), allowed)
        }
    }

    private func isSame(_ bytes: UnsafeBufferPointer<UInt8>, _ name: String) -> Bool {
        unsafe bytes.elementsEqual(name.utf8) { lowercased($0) == lowercased($1) }
    }

    private func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    /// Records the requested upgrade.
    /// - Returns: why it is rejected, if it is.
    private mutating func requestUpgrade(
        for offered: ByteRange?, _ exchange: Int32, _ route: Int, _ bytes: UnsafeBufferPointer<UInt8>
    ) -> Failure? {
        guard let offered else { return .upgradeRefused }
        guard head.method == .get, head.framing.isEmpty else { return .upgradeMalformed }
        let tunnel = tunnels.allocate()
        tunnels[tunnel].begin()
        exchanges[exchange].tunnel = tunnel
        unsafe tunnels[tunnel].name.append(bytes[offered])
        tunnels[tunnel].idleTimeout = snapshot.compiledRoutes[route].tunnels.idleTimeout
        tunnels[tunnel].endsAt = snapshot.compiledRoutes[route].tunnels.maximumAge
        tunnels[tunnel].isWebSocket = unsafe isSame(bytes[offered], "websocket")
        return unsafe tunnels[tunnel].isWebSocket ? requestWebSocket(tunnel, bytes) : nil
    }

    /// RFC 6455 §4.2.1; an HTTP/2 stream has no key (RFC 8441 §5), its generated head has one of the gateway's.
    private mutating func requestWebSocket(_ tunnel: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> Failure? {
        var (keys, versions) = (0, 0)
        var key = ByteRange.empty
        var version = ByteRange.empty
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            // An upstream that folds names could take another spelling for a second key.
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

    /// Whether the chosen endpoint supports upgrades.
    func carriesUpgrades(_ exchange: Int32) -> Bool {
        switch directory.endpoints[Int(exchanges[exchange].endpoint)].address {
        case .http: true
        case .https, .unix: directory.clusters[Int(exchanges[exchange].cluster)].upstream.carriesUpgrades
        case .h2c, .echo: false
        }
    }

    /// Writes the upgrade offer into the upstream's head.
    func writeUpgrade(_ exchange: Int32, into out: inout ByteBuffer) {
        let tunnel = exchanges[exchange].tunnel
        out.append("Connection: Upgrade\r\nUpgrade: ")
        unsafe out.append(unsafe tunnels[tunnel].name.bytes)
        out.append("\r\n")
    }

    /// The upstream has switched: from now on bytes pass in both directions.
    mutating func openTunnel(_ bytes: UnsafeBufferPointer<UInt8>, _ upstream: Int32) {
        let exchange = upstreams[upstream].exchange
        let tunnel = exchanges[exchange].tunnel
        let downstream = exchanges[exchange].downstream
        guard exchanges[exchange].headSent == exchanges[exchange].head.count, unsafe matchesOffer(tunnel, bytes) else {
            return rejectResponse(upstream, "upstream.unexpected_upgrade")
        }
        directory.succeeded(upstreams[upstream].endpoint)
        unsafe writeSwitch(exchange, bytes)
        exchanges[exchange].status = 101
        exchanges[exchange].hasResponseStarted = true
        exchanges[exchange].closesDownstream = true
        // What follows the head is not a body: it ends with the connection.
        exchanges[exchange].isRequestComplete = false
        exchanges[exchange].head.release()
        exchanges[exchange].headSent = 0
        upstreams[upstream].phase = .body
        upstreams[upstream].framing = .untilClose
        upstreams[upstream].keepsAlive = false
        arm(upstream: upstream, at: .max)
        downstreams[downstream].isProbePending = false
        arm(downstream: downstream, at: .max)
        let hasExtensions = response.fields.has(.secWebSocketExtensions)
        tunnels[tunnel].fromDownstream.hasExtensions = hasExtensions
        tunnels[tunnel].fromUpstream.hasExtensions = hasExtensions
        tunnels[tunnel].phase = .open
        tunnels[tunnel].openedAt = now
        tunnels[tunnel].usedAt = now
        tunnels[tunnel].endsAt = now &+ tunnels[tunnel].endsAt
        tunnels[tunnel].idleTimeout = min(tunnels[tunnel].idleTimeout, exchanges[exchange].idleTimeout)
        counters.tunnelsOpened &+= 1
        counters.tunnelsOpen &+= 1
        markReady(downstream: downstream)
    }

    /// Whether a 101 matches the offer: the same protocol, and for a WebSocket the digest of its key (RFC 6455 §4.1).
    private func matchesOffer(_ tunnel: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let (name, switched) = unsafe (tunnels[tunnel].name.bytes, bytes[response.upgrade])
        guard unsafe name.elementsEqual(switched, by: { lowercased($0) == lowercased($1) }) else { return false }
        var accepts = 0
        for index in 0..<response.fields.count {
            switch response.fields[index].known {
            case .contentLength, .transferEncoding: return false
            case .secWebSocketAccept:
                accepts += 1
                let accept = unsafe bytes[response.fields[index].value]
                let isRight = unsafe accept.elementsEqual(tunnels[tunnel].accept.bytes)
                guard isRight || !tunnels[tunnel].isWebSocket else { return false }
            default: break
            }
        }
        return accepts == 1 || !tunnels[tunnel].isWebSocket
    }

    private mutating func writeSwitch(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        staging.append("HTTP/1.1 101 Switching Protocols\r\n")
        unsafe copyFields(bytes, isStrict: isStrict(exchange), isInterim: true)
        staging.append("Connection: Upgrade\r\nUpgrade: ")
        unsafe staging.append(unsafe tunnels[exchanges[exchange].tunnel].name.bytes)
        staging.append("\r\nX-Request-Id: ")
        unsafe staging.append(unsafe exchanges[exchange].texts.requestID)
        staging.append("\r\n\r\n")
        sendStreamHead(exchange, ends: false)
    }
}
