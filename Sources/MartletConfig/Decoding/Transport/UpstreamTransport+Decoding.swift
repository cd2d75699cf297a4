private import MartletCore

extension UpstreamTransport.Version: ConfigurationValue {}

/// `proxy_protocol:` of an upstream: the only version that is supported for sending.
private enum ProxyProtocolVersion: String, CaseIterable, ConfigurationValue { case v2 }

extension UpstreamTransport {
    /// The keys of an upstream that configure its transport.
    static let keys: [ConfigurationGrammar.Key] = [
        .optional(
            "protocol", .choice(Version.allCases.map(\.rawValue)), default: "http1",
            "The protocol of `https` and `unix` endpoints: `http1` (HTTP/1.1) or `h2` (HTTP/2)."),
        .optional(
            "tls", .block(of: UpstreamTLS.self), "Server verification and the client certificate for `https` endpoints."
        ),
        .optional(
            "proxy_protocol", .choice(ProxyProtocolVersion.allCases.map(\.rawValue)),
            "`v2`: connections begin with a PROXY protocol header that names the client."),
    ]

    init(from reader: inout ConfigurationReader, endpoints: [Located<EndpointAddress>]) {
        self.init()
        version = reader.optional("protocol", default: .http1)
        let isEncrypted = endpoints.contains { $0.value.isEncrypted }
        if let node = reader.node("tls") {
            tls = reader.block("tls") ?? UpstreamTLS()
            if !isEncrypted, !endpoints.isEmpty {
                reader.error(.configConflictingKeys, at: node.location, "tls: none of the endpoints is https://…")
            }
        }
        sendsProxyProtocol = reader.optional("proxy_protocol", as: ProxyProtocolVersion.self) != nil
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
        if let node = reader.node("proxy_protocol"), sendsProxyProtocol, usesHTTP2 {
            reader.error(
                .configConflictingKeys, at: node.location,
                "proxy_protocol: cannot be used with HTTP/2: a connection carries many clients' requests, and the header names one"
            )
        }
    }
}

extension EndpointAddress {
    fileprivate var isEncrypted: Bool { if case .https = self { true } else { false } }
}

extension UpstreamTLS: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "ca_file", .path, "The certificate authorities of the endpoints, as PEM; the system's if absent."),
            .optional("server_name", .text, "The name for SNI and verification; the endpoint's host if absent."),
            .optional("certificate_file", .path, "The client certificate, as PEM."),
            .optional("key_file", .path, "Its private key as PEM."),
            .optional("verify", .boolean, default: "true", "`false` accepts any certificate."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        authorityFile = reader.file("ca_file")
        serverName = reader.optional("server_name", as: ServerName.self)?.text
        certificate = reader.certificatePair()
        let verify = reader.optional("verify", as: Located<Bool>.self)
        guard let verify, !verify.value else { return }
        verifies = false
        reader.diagnostics.warning(
            .configInsecure, at: verify.location,
            "verify: any certificate is accepted: anyone on the network path can read and change the traffic")
        if let authorityFile {
            reader.diagnostics.warning(
                .configUnused, at: authorityFile.location, "ca_file: unused with 'verify: false'")
        }
    }
}

/// A host name or an address literal without a port.
struct ServerName: ConfigurationValue {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text().lowercased()
        guard HostAndPort.isHostName(text) || HostAndPort.addressBytes(text) != nil else {
            throw node.error(.configBadValue, "\(quoted(text)) is not a host name")
        }
    }
}
