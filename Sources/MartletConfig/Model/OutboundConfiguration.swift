/// `outbound:`, and the same keys of a provider: how the gateway reaches what it calls.
@frozen package struct OutboundConfiguration: Sendable {
    /// An HTTP proxy, or that there is none whatever the environment says.
    @frozen package enum Proxy: Sendable, Hashable {
        case off
        case address(ProxyAddress)
    }

    package var caFile: FilePath?
    /// Through which https calls go; `nil` for that of the environment.
    package var proxy: Proxy?
    /// The hosts that are called directly; `nil` for those of the environment.
    package var exceptions: [String]?

    package init() {}
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
