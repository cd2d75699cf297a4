internal import MartletCore

extension OutboundConfiguration: ConfigurationDecodable {
    private static let maximumFileBytes = 4 * 1024 * 1024

    /// The keys of the block, which every provider has too.
    static let keys: [ConfigurationGrammar.Key] = [
        .optional(
            "ca_file", .path, "Authorities to trust instead of the system's, PEM; `SSL_CERT_FILE` names them if absent."
        ),
        .optional(
            "http_proxy", .either([.choice(["off"]), .pattern("^https?://")]),
            "The HTTP proxy of https calls, or `off`; `HTTPS_PROXY` names it if absent."),
        .optional(
            "no_proxy", .list(.text, nonEmpty: false),
            "Names, with all below them, addresses and networks that are called directly; `NO_PROXY` if absent."),
    ]

    package static var grammar: ConfigurationGrammar? { .init(keys) }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        read(&reader)
    }

    /// Reads the keys of a block that may have others; errors are recorded.
    mutating func read(_ reader: inout ConfigurationReader) {
        if let bytes = reader.file("ca_file", maximumBytes: Self.maximumFileBytes) {
            caFile = reader.optional("ca_file")
            if !String(decoding: bytes.value, as: UTF8.self).contains("-----BEGIN CERTIFICATE-----") {
                reader.error(.configBadValue, at: bytes.location, "ca_file: has no certificate in PEM")
            }
        }
        proxy = reader.optional("http_proxy")
        exceptions = reader.optional("no_proxy", as: NoProxyList.self)?.hosts
    }
}

extension OutboundConfiguration.Proxy: ConfigurationValue {
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
private struct NoProxyList: ConfigurationValue {
    let hosts: [String]

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
        self.hosts = hosts
    }
}
