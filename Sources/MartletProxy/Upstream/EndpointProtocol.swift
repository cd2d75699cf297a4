internal import MartletConfig
internal import MartletTLS

/// The protocol of an endpoint.
struct EndpointProtocol {
    let isHTTP2: Bool
    let sendsProxyHeader: Bool
    /// Encrypts connections; `nil` in clear text.
    let tls: TLSClientContext?
    /// The server name that its certificate must have.
    let serverName: String

    var isSecure: Bool { tls != nil }

    init(_ address: EndpointAddress, _ upstream: Upstream) {
        sendsProxyHeader = upstream.transport.sendsProxyProtocol
        switch address {
        case .h2c: isHTTP2 = true
        case .http, .echo: isHTTP2 = false
        case .https, .unix: isHTTP2 = upstream.transport.version == .h2
        }
        if case .https(let host, _) = address {
            tls = upstream.tls
            serverName = upstream.transport.tls.serverName ?? host.withoutFinalDot
        } else {
            tls = nil
            serverName = ""
        }
    }
}
