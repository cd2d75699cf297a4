internal import MartletCore

extension OutboundConfiguration: KeyedBlock {
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
