internal import MartletDecisions

extension DownstreamConnections {
    /// What the connection of a request says about its client.
    /// - Parameter hasCertificate: whether the certificate of the handshake is of use.
    @inline(__always)
    mutating func clientSide(
        of exchange: Handle<Exchange>, hasCertificate: Bool = false, _ exchanges: inout Exchanges
    ) -> ClientSide {
        let downstream = exchanges[exchange].downstream
        let check = exchanges[exchange].request.check
        var client = ClientSide(
            isSecure: self[downstream].origin.rules.isSecure, isTrusted: self[downstream].origin.address.isTrusted,
            check: check, opensWebSocket: !exchanges[exchange].tunnel.isNone || check.contains(.opensWebSocket))
        if hasCertificate { unsafe client.certificate = handshakeCertificate(downstream) }
        return client
    }
}
