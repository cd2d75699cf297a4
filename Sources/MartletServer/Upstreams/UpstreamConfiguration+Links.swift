internal import MartletConfig
internal import MartletDecisions
internal import MartletFetch
internal import MartletIO

/// The endpoints of an upstream, as transfers that the event loops have no part in reach them.
extension UpstreamConfiguration {
    struct Link {
        let member: EndpointConfiguration
        let identity: EndpointIdentity
        /// `nil` for a host name without an address.
        let destination: EndpointDestination?
    }

    /// Every endpoint: one for each address of a host name, unless the name is one endpoint.
    /// - Parameters:
    ///   - addresses: of host names.
    ///   - port: instead of the endpoints' own.
    func links(_ addresses: [EndpointIdentity: [SocketEndpoint]], port other: UInt16? = nil) -> [Link] {
        members.flatMap { member -> [Link] in
            let identity = EndpointIdentity(upstream: name.value, address: member.address.value)
            func link(_ destination: EndpointDestination?, _ resolved: SocketEndpoint? = nil) -> Link {
                let identity = EndpointIdentity(upstream: name.value, address: identity.address, resolved: resolved)
                return Link(member: member, identity: identity, destination: destination)
            }
            switch identity.address {
            case .echo: return []
            case .unix(let path): return [link(.unix(path: path))]
            case .http(let host, let port), .https(let host, let port), .h2c(let host, let port):
                let port = other ?? port
                if SocketEndpoint(literal: host, port: port) != nil { return [link(.tcp(address: host, port: port))] }
                let known = addresses[identity] ?? []
                let destinations = known.map { EndpointDestination.tcp(address: $0.addressText, port: port) }
                guard policies.resolution.usesAllAddresses else { return [link(destinations.first)] }
                return zip(known, destinations).map { link($1, $0) }
            }
        }
    }

    func version(of address: EndpointAddress) -> EndpointVersion {
        switch address {
        case .h2c: .http2
        case .http, .echo: .http1
        case .https, .unix: transport.version == .h2 ? .http2 : .http1
        }
    }

    /// The TLS settings of an endpoint; `nil` in clear text.
    func security(of address: EndpointAddress) -> EndpointTLS? {
        guard case .https(let host, _) = address else { return nil }
        var tls = EndpointTLS(serverName: transport.tls.serverName ?? host.withoutFinalDot)
        tls.authorityFile = transport.tls.authorityFile?.value
        tls.certificateFile = transport.tls.certificate?.certificate.value
        tls.keyFile = transport.tls.certificate?.key.value
        tls.verifies = transport.tls.verifies
        return tls
    }
}

extension Sequence<ResolvedName> {
    var addresses: [EndpointIdentity: [SocketEndpoint]] {
        Dictionary(
            map { (EndpointIdentity(upstream: $0.upstream, address: $0.endpoint), $0.addresses) },
            uniquingKeysWith: { _, last in last })
    }
}

extension EndpointAddress {
    /// Host and port as in `Host`; the port is left out where it is the scheme's.
    /// - Parameter port: instead of its own.
    func authority(port other: UInt16? = nil) -> String {
        guard let (host, port) = hostAndPort else { return "localhost" }
        let name = host.contains(":") ? "[\(host)]" : host.withoutFinalDot
        let standard: UInt16 = if case .https = self { 443 } else { 80 }
        let used = other ?? port
        return used == standard ? name : "\(name):\(used)"
    }
}
