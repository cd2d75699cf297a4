package import MartletConfig
package import MartletTLS

/// The protocol of an endpoint.
package struct EndpointProtocol {
    package let isHTTP2: Bool
    package let sendsProxyHeader: Bool
    /// Encrypts connections; `nil` in clear text.
    package let tls: TLSClientContext?
    /// The server name that its certificate must have.
    package let serverName: String

    package var isSecure: Bool { tls != nil }

    package init(_ address: EndpointAddress, _ upstream: Upstream) {
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
