/// `outbound:`, and the same keys of a provider: how the gateway reaches what it calls.
@frozen package struct OutboundConfiguration: KeyedBlock {
    /// An HTTP proxy, or that there is none whatever the environment says.
    @frozen package enum Proxy: Sendable, Hashable {
        case off
        case address(ProxyAddress)
    }

    package var caFile: FilePath?
    package var proxy: Proxy?
    package var exceptions: [String]?

    package init() {}

    private static let maximumFileBytes = 4 * 1024 * 1024

    /// Every provider has them, too.
    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "ca_file", \.caFile,
            "Authorities to trust instead of the system's, PEM; `SSL_CERT_FILE` names them if absent."),
        .key("http_proxy", \.proxy, "The HTTP proxy of https calls, or `off`; `HTTPS_PROXY` names it if absent."),
        .key(
            "no_proxy", \.exceptions, as: NoProxyList?.self,
            "Names, with all below them, addresses and networks that are called directly; `NO_PROXY` if absent."),
        .check { outbound, reader in
            guard let bytes = reader.file("ca_file", maximumBytes: maximumFileBytes) else {
                outbound.caFile = nil
                return
            }
            if !String(decoding: bytes.value, as: UTF8.self).contains("-----BEGIN CERTIFICATE-----") {
                reader.error(.configBadValue, at: bytes.location, "ca_file: has no certificate in PEM")
            }
        },
    ]
}

extension OutboundConfiguration.Proxy: ConfigurationValue, Spelling {
    static let shape = ConfigurationGrammar.Shape.either([.choice(["off"]), .pattern("^https?://")])

    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        if text == "off" {
            self = .off
            return
        }
        guard text.contains("://"), let address = ProxyAddress(text) else {
            // Not shown, because it may contain a password.
            throw node.error(
                .configBadURL, "must be 'off', or the URL of a proxy such as http://proxy.example.com:3128")
        }
        self = .address(address)
    }
}

/// The hosts of `no_proxy`.
private struct NoProxyList: Spelling {
    static let shape = ConfigurationGrammar.Shape.list(.text, nonEmpty: false)
    let content: [String]

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let elements = node.elements else { throw node.mismatch("", mustBe: "a list") }
        var hosts: [String] = []
        for element in elements {
            let text = try element.text()
            guard (1...253).contains(text.utf8.count),
                text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") }), !text.contains("://")
            else {
                throw element.error(
                    .configBadValue, "must be a host name, an address, a network such as 10.0.0.0/8, or *")
            }
            // The client takes a name for all below it, too, with a dot before it or without.
            hosts.append(text.hasPrefix("*.") ? String(text.dropFirst()) : text)
        }
        content = hosts
    }
}

/// The address of an HTTP proxy: `http://proxy.example.com:3128`, with a user and a password if it needs them.
@frozen package struct ProxyAddress: Sendable, Hashable {
    /// For the client, with the password.
    package let url: String
    /// For operators: host and port.
    package let label: String

    /// `nil` if the text is no such address.
    package init?(_ text: String) {
        guard text.utf8.count <= 2048, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        let bytes = Array(text.utf8)
        let isSecure = bytes.starts(with: "https://".utf8)
        let scheme = isSecure ? "https://" : "http://"
        // The variables of other programs may have no scheme.
        guard bytes.starts(with: scheme.utf8) || !text.contains("://") else { return nil }
        var rest = bytes.starts(with: scheme.utf8) ? bytes[scheme.utf8.count...] : bytes[...]
        if rest.last == UInt8(ascii: "/") { rest = rest.dropLast() }
        var user = ""
        if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
            user = String(decoding: rest[...at], as: UTF8.self)
            rest = rest[(at + 1)...]
        }
        guard !user.utf8.contains(where: { "/?#".utf8.contains($0) }),
            let (host, port) = HostAndPort.parse(Array(rest)), port != 0
        else { return nil }
        let literal = host.contains(":") ? "[\(host)]" : host
        label = "\(literal):\(port ?? (isSecure ? 443 : 80))"
        url = "\(scheme)\(user)\(label)"
    }
}

/// `jwks:` — how issuers' keys are fetched and cached.
@frozen package struct JWKSConfiguration: KeyedBlock, Equatable {
    package var ttl = Duration.seconds(3600)
    package var maximumStale = Duration.seconds(24 * 3600)
    package var unknownKeyCooldown = Duration.seconds(60)
    package var negativeTTL = Duration.seconds(60)
    package var fetchTimeout = Duration.seconds(3)

    static let keys: [ConfigurationKey<Self>] = [
        .key("ttl", \.ttl, in: Duration.positive, "Age at which an issuer's keys are fetched again."),
        .key("max_stale", \.maximumStale, "How long keys stay in use while fetching fails."),
        .key(
            "unknown_kid_cooldown", \.unknownKeyCooldown, in: Duration.positive,
            "The minimum interval between fetches for unknown key ids."),
        .key(
            "negative_ttl", \.negativeTTL, in: Duration.positive,
            "How long a key id that does not exist is cached as unknown."),
        .key("fetch_timeout", \.fetchTimeout, in: Duration.positive, "The timeout of one fetch."),
    ]
}
