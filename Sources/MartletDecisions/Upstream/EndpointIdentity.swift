package import MartletConfig
package import MartletIO

/// An endpoint as every part of the process knows it, loops and health checks alike.
package struct EndpointIdentity: Sendable, Hashable {
    /// The name of its upstream.
    package let upstream: String
    /// As it stands in the file.
    package let address: EndpointAddress
    /// The address that a host name has, where each is an endpoint of its own; `nil` where they are one.
    package let resolved: SocketEndpoint?

    package init(upstream: String, address: EndpointAddress, resolved: SocketEndpoint? = nil) {
        self.upstream = upstream
        self.address = address
        self.resolved = resolved
    }

    /// The same endpoint, whatever its address.
    package var whole: EndpointIdentity {
        resolved == nil ? self : EndpointIdentity(upstream: upstream, address: address)
    }

    /// Whether it is meant by another identity: one without a resolved address means all of its addresses.
    package func matches(_ other: EndpointIdentity) -> Bool {
        upstream == other.upstream && address == other.address
            && (other.resolved == nil || resolved == other.resolved)
    }
}

/// What the health checks say of an endpoint.
package struct EndpointHealth: Sendable, Equatable {
    package let endpoint: EndpointIdentity
    package let isHealthy: Bool
    /// Why, in words: `status 503`, `connection refused`.
    package let reason: String

    package init(_ endpoint: EndpointIdentity, isHealthy: Bool, reason: String) {
        self.endpoint = endpoint
        self.isHealthy = isHealthy
        self.reason = reason
    }
}
