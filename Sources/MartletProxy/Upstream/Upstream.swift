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

/// The current addresses of a host name in an upstream, which has its own rules for them.
package struct ResolvedName: Sendable, Equatable {
    /// The name of the upstream.
    package let upstream: String
    package let endpoint: EndpointAddress
    /// In a stable order; empty for a name without an address.
    package let addresses: [SocketEndpoint]

    package init(upstream: String, endpoint: EndpointAddress, addresses: [SocketEndpoint]) {
        self.upstream = upstream
        self.endpoint = endpoint
        self.addresses = addresses
    }
}
