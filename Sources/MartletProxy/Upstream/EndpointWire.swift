internal import MartletConfig
internal import MartletTLS

/// How an endpoint is spoken to.
struct EndpointWire {
    let isHTTP2: Bool
    let sendsProxyHeader: Bool
    /// Encrypts connections; `nil` in clear text.
    let tls: TLSClientContext?
    /// Whose certificate it must show.
    let serverName: String

    var isSecure: Bool { tls != nil }

    init(_ address: EndpointAddress, _ upstream: Upstream) {
        sendsProxyHeader = upstream.wire.sendsProxyProtocol
        switch address {
        case .h2c: isHTTP2 = true
        case .http, .echo: isHTTP2 = false
        case .https, .unix: isHTTP2 = upstream.wire.version == .h2
        }
        if case .https(let host, _) = address {
            tls = upstream.tls
            serverName = upstream.wire.tls.serverName ?? host
        } else {
            tls = nil
            serverName = ""
        }
    }
}
