internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletReports
internal import MartletResponder
internal import MartletRouter

/// Upgrades (RFC 9110 §7.8): from the offer in a request, which is authorized like any other request, to the upstream's
/// 101 (Switching Protocols), which alone turns the two connections into a tunnel.
///
/// Until then nothing that a client sends after its head is forwarded: an upstream that responds otherwise would read
/// it as the next request, one that was never authorized.
extension EventLoop {
    /// Whether the exchange is a tunnel.
    @inline(__always)
    func isTunnel(_ exchange: Handle<Exchange>) -> Bool {
        guard !exchange.isNone, !exchanges[exchange].tunnel.isNone else { return false }
        return tunnels[exchanges[exchange].tunnel].phase != .requested
    }

    // MARK: The offer

    /// Checks what a request wants to upgrade to; of several protocols the first that the route allows is used.
    ///
    /// - Returns: whether the request continues, as an upgrade or, where it offers only what is ignored, as any other.
    mutating func checkUpgrade(_ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        // The head may be processed again, after its credential was verified and under another configuration.
        releaseTunnel(of: exchange)
        let allowed = snapshot.routes.routes[route].upgrade.protocols
        switch unsafe UpgradeOffer.read(head, bytes.span, allowed: allowed) {
        case .none: return true
        case .accepted(let accepted):
            let tunnel = tunnels.allocate()
            unsafe tunnels[tunnel].request(accepted, bytes.span, snapshot.compiledRoutes[route].tunnels)
            exchanges[exchange].tunnel = tunnel
            return true
        case .rejected(let failure):
            counters.tunnels.rejectedUpgrades &+= 1
            reject(exchange, failure)
            return false
        }
    }

    // MARK: The upstream

    /// Whether the chosen endpoint supports upgrades.
    @inline(never)
    func carriesUpgrades(_ exchange: Handle<Exchange>) -> Bool {
        switch directory.endpoints[Int(exchanges[exchange].forwarding.endpoint)].address {
        case .http: true
        case .https, .unix: directory.clusters[Int(exchanges[exchange].forwarding.cluster)].upstream.carriesUpgrades
        case .h2c, .echo: false
        }
    }

    /// The upstream has switched: from now on bytes pass in both directions.
    mutating func openTunnel(_ bytes: UnsafeBufferPointer<UInt8>, _ upstream: Handle<UpstreamConnection>) {
        let exchange = upstreams[upstream].exchange
        let tunnel = exchanges[exchange].tunnel
        guard exchanges[exchange].forwarding.headSent == exchanges[exchange].forwarding.head.count,
            unsafe tunnels[tunnel].offer.matches(response, bytes.span)
        else {
            return rejectResponse(upstream, "upstream.unexpected_upgrade")
        }
        directory.succeeded(upstreams[upstream].endpoint)
        unsafe writeSwitch(exchange, bytes)
        switchProtocols(of: exchange, upstream)
        tunnels[tunnel].open(
            now: now, hasExtensions: response.fields.has(.secWebSocketExtensions),
            upstreamIdleTimeout: exchanges[exchange].forwarding.idleTimeout)
        counters.tunnels.opened &+= 1
        counters.tunnels.open &+= 1
        markReady(downstream: exchanges[exchange].downstream)
    }

    /// HTTP ends on both connections, and with it their deadlines.
    private mutating func switchProtocols(of exchange: Handle<Exchange>, _ upstream: Handle<UpstreamConnection>) {
        let downstream = exchanges[exchange].downstream
        exchanges[exchange].response.status = 101
        exchanges[exchange].response.hasStarted = true
        exchanges[exchange].response.closesDownstream = true
        // What follows the head is not a body: it ends with the connection.
        exchanges[exchange].body.isComplete = false
        exchanges[exchange].forwarding.head.release()
        exchanges[exchange].forwarding.headSent = 0
        upstreams[upstream].phase = .body
        upstreams[upstream].response.framing = .untilClose
        upstreams[upstream].response.keepsAlive = false
        arm(upstream: upstream, at: .max)
        downstreams[downstream].probe.isPending = false
        arm(downstream: downstream, at: .max)
    }

    /// Writes the head of the client's 101.
    private mutating func writeSwitch(_ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe headWriter(exchange).writeSwitch(
            response, bytes, to: tunnels[exchanges[exchange].tunnel].offer.name.bytes,
            requestID: exchanges[exchange].record.texts.requestID, into: &staging)
        sendStreamHead(exchange, ends: false)
    }
}
