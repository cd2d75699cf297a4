private import MartletCore

extension UpstreamWire.Version: ConfigurationValue {}

/// `proxy_protocol:` of an upstream: the only version that is written.
private enum ProxyProtocolVersion: String, CaseIterable, ConfigurationValue { case v2 }

extension UpstreamWire {
    /// The keys of an upstream that say how it is spoken to.
    static let keys: [ConfigurationGrammar.Key] = [
        .optional(
            "protocol", .choice(Version.allCases.map(\.rawValue)), default: "http1",
            "What `https` and `unix` endpoints speak: `http1` (HTTP/1.1) or `h2` (HTTP/2)."),
        .optional("tls", .block(of: UpstreamTLS.self), "How `https` endpoints are verified, and who they see."),
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
            .configInsecure, at: endpoint.location, "endpoints: this one is in clear text, beside others with TLS")
    }

    /// What an endpoint's scheme and the other keys say against each other.
    private func check(_ endpoint: Located<EndpointAddress>, isEncrypted: Bool, _ reader: inout ConfigurationReader) {
        var speaksHTTP2 = version == .h2
        switch endpoint.value {
        case .http:
            if version == .h2 {
                reader.error(
                    .configConflictingKeys, at: endpoint.location,
                    "endpoints: an http endpoint speaks HTTP/1.1: with 'protocol: h2' it is written h2c://…")
            } else if isEncrypted {
                warnOfClearText(endpoint, &reader)
            }
        case .h2c:
            speaksHTTP2 = true
            if version == .http1, reader.has("protocol") {
                reader.error(
                    .configConflictingKeys, at: endpoint.location,
                    "endpoints: an h2c endpoint speaks HTTP/2: with 'protocol: http1' it is written http://…")
            } else if isEncrypted {
                warnOfClearText(endpoint, &reader)
            }
        case .https, .unix: break
        case .echo: speaksHTTP2 = false
        }
        if let node = reader.node("proxy_protocol"), sendsProxyProtocol, speaksHTTP2 {
            reader.error(
                .configConflictingKeys, at: node.location,
                "proxy_protocol: a connection of HTTP/2 carries many clients' requests, and the header names one of them"
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
                "ca_file", .path, "Who may have signed the endpoints' certificates, as PEM; the system's without it."),
            .optional("server_name", .text, "The name that is asked for and verified; the endpoint's host without it."),
            .optional("certificate_file", .path, "The certificate that endpoints get to see, as PEM."),
            .optional("key_file", .path, "Its private key as PEM."),
            .optional("verify", .boolean, default: "true", "`false` believes any certificate."),
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
            "verify: any certificate is believed: whoever sits in between reads and changes everything")
        if let authorityFile {
            reader.diagnostics.warning(
                .configUnused, at: authorityFile.location, "ca_file: with 'verify: false' nobody looks at it")
        }
    }
}

/// A host name or an address literal without a port.
private struct ServerName: ConfigurationValue {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text().lowercased()
        guard HostAndPort.isHostName(text) || HostAndPort.addressBytes(text) != nil else {
            throw node.error(.configBadValue, "\(quoted(text)) is not a host name")
        }
    }
}
