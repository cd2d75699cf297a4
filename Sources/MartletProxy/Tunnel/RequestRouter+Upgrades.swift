internal import MartletConfig
internal import MartletDecisions
internal import MartletResponder
internal import MartletRouter

/// Upgrades (RFC 9110 §7.8): the offer in a request, which is authorized like any other request.
///
/// Until the upstream has switched nothing that a client sends after its head is forwarded: an upstream that responds
/// otherwise would read it as the next request, one that was never authorized.
extension RequestRouter {
    /// Checks what a request wants to upgrade to; of several protocols the first that the route allows is used.
    ///
    /// The request continues as an upgrade or, where it offers only what is ignored, as any other.
    mutating func checkUpgrade(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ context: inout LoopContext
    ) throws(Failure) {
        // The head may be processed again, after its credential was verified and under another configuration.
        exchanges.releaseTunnel(of: exchange, &context)
        let allowed = context.snapshot.routes.routes[route].upgrade.protocols
        let isConnect = exchanges[exchange].request.isConnect
        switch unsafe UpgradeOffer.read(head, bytes.span, allowed: allowed, isConnect: isConnect) {
        case .none: break
        case .accepted(let accepted):
            let tunnel = exchanges.tunnels.allocate()
            unsafe exchanges.tunnels[tunnel].request(
                accepted, bytes.span, context.snapshot.compiledRoutes[route].tunnels)
            exchanges[exchange].tunnel = tunnel
        case .rejected(let failure):
            context.counters.tunnels.rejectedUpgrades &+= 1
            throw failure
        }
    }
}
