internal import MartletCore

/// Protocol version, TLS and PROXY protocol of connections to an upstream.
@frozen package struct UpstreamTransport: Sendable, Hashable {
    /// HTTP/1.1 or HTTP/2.
    @frozen package enum Version: String, ConfigurationChoice { case http1, h2 }

    package var version = Version.http1
    package var tls = UpstreamTLS()
    package var sendsProxyProtocol = false

    package init() {}

    /// The keys of an upstream that set it.
    static let keys: [ConfigurationKey<UpstreamConfiguration>] = [
        .key(
            "protocol", \.transport.version,
            "The protocol of `https` and `unix` endpoints: `http1` (HTTP/1.1) or `h2` (HTTP/2)."),
        .block(
            "tls", \.transport.tls, default: nil,
            "Server verification and the client certificate for `https` endpoints."),
        .key(
            "proxy_protocol", \.transport.sendsProxyProtocol, as: ProxyProtocolVersion.self,
            "`v2`: connections begin with a PROXY protocol header that names the client."),
    ]

    /// Records what of it does not fit to the endpoints.
    func check(_ endpoints: [Located<EndpointAddress>], _ reader: inout ConfigurationReader) {
        let isEncrypted = endpoints.contains { $0.value.isEncrypted }
        if !isEncrypted, !endpoints.isEmpty {
            reader.reject("tls", .configConflictingKeys, "none of the endpoints is https://…")
        }
        for endpoint in endpoints { check(endpoint, isEncrypted: isEncrypted, &reader) }
    }

    private func warnOfClearText(_ endpoint: Located<EndpointAddress>, _ reader: inout ConfigurationReader) {
        reader.diagnostics.warning(
            .configInsecure, at: endpoint.location, "endpoints: this endpoint is in clear text, while others use TLS")
    }

    /// Records conflicts between an endpoint's scheme and the other keys.
    private func check(_ endpoint: Located<EndpointAddress>, isEncrypted: Bool, _ reader: inout ConfigurationReader) {
        var usesHTTP2 = version == .h2
        switch endpoint.value {
        case .http:
            if version == .h2 {
                reader.error(
                    .configConflictingKeys, at: endpoint.location,
                    "endpoints: an http endpoint uses HTTP/1.1: with 'protocol: h2' write h2c://…")
            } else if isEncrypted {
                warnOfClearText(endpoint, &reader)
            }
        case .h2c:
            usesHTTP2 = true
            if version == .http1, reader.has("protocol") {
                reader.error(
                    .configConflictingKeys, at: endpoint.location,
                    "endpoints: an h2c endpoint uses HTTP/2: with 'protocol: http1' write http://…")
            } else if isEncrypted {
                warnOfClearText(endpoint, &reader)
            }
        case .https, .unix: break
        case .echo: usesHTTP2 = false
        }
        if sendsProxyProtocol, usesHTTP2 {
            reader.reject(
                "proxy_protocol", .configConflictingKeys,
                "cannot be used with HTTP/2: a connection carries many clients' requests, and the header names one")
        }
    }
}

/// `proxy_protocol:` of an upstream: the only version that is supported for sending.
private enum ProxyProtocolVersion: String, ConfigurationChoice {
    case v2
    static func text(of content: Bool) -> String? { nil }
    var content: Bool { true }
}

extension EndpointAddress {
    fileprivate var isEncrypted: Bool { if case .https = self { true } else { false } }
}

/// `upstreams.*.tls`.
@frozen package struct UpstreamTLS: KeyedBlock, Hashable {
    package var authorityFile: Located<String>?
    package var serverName: String?
    package var certificate: CertificateFiles?
    package var verifies = true

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "ca_file", \.authorityFile, as: Located<PathText>?.self,
            "The certificate authorities of the endpoints, as PEM; the system's if absent."),
        .key(
            "server_name", \.serverName, as: ServerName?.self,
            "The name for SNI and verification; the endpoint's host if absent."),
        .certificate(\.certificate, "The client certificate, as PEM.", "Its private key as PEM."),
        .key("verify", \.verifies, "`false` accepts any certificate."),
        .check { tls, reader in
            guard !tls.verifies else { return }
            reader.warn(
                "verify", .configInsecure,
                "any certificate is accepted: anyone on the network path can read and change the traffic")
            if tls.authorityFile != nil { reader.warn("ca_file", .configUnused, "unused with 'verify: false'") }
        },
    ]
}

/// A host name or an address literal without a port.
struct ServerName: TextSpelling {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text().lowercased()
        guard HostAndPort.isHostName(text) || HostAndPort.addressBytes(text) != nil else {
            throw node.error(.configBadValue, "\(quoted(text)) is not a host name")
        }
    }
}
