package import MartletConfig
internal import MartletCore
package import MartletIO
package import MartletTLS

/// An upstream, as the loops use it.
package struct Upstream: Sendable {
    package let name: String
    package let endpoints: [EndpointAddress]
    /// Timeouts in nanoseconds.
    let connectTimeout: Int64
    let responseTimeout: Int64
    let idleTimeout: Int64
    package let host: UpstreamConfiguration.HostPolicy
    package let balance: UpstreamConfiguration.Balance
    package let transport: UpstreamTransport
    /// For its https endpoints.
    package let tls: TLSClientContext?
    /// Whether its connections support upgrades; HTTP/2 connections carry other requests, too.
    let carriesUpgrades: Bool

    package init(_ configuration: UpstreamConfiguration, tls: TLSClientContext? = nil) {
        transport = configuration.transport
        self.tls = tls
        name = configuration.name.value
        endpoints = configuration.endpoints.map(\.value)
        connectTimeout = configuration.timeouts.connect.boundedNanoseconds
        responseTimeout = configuration.timeouts.responseHead.boundedNanoseconds
        idleTimeout = configuration.timeouts.idle.boundedNanoseconds
        host = configuration.host
        balance = configuration.balance
        carriesUpgrades = configuration.transport.version == .http1
    }
}

/// The current addresses of an upstream's host name.
package struct ResolvedName: Sendable {
    package let endpoint: EndpointAddress
    package let addresses: [SocketEndpoint]

    package init(endpoint: EndpointAddress, addresses: [SocketEndpoint]) {
        self.endpoint = endpoint
        self.addresses = addresses
    }
}
