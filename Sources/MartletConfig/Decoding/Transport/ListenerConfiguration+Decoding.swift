extension ListenerConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .required(
                "address", .text,
                "`127.0.0.1:8080`, `[::]:8443`, `unix:/run/martlet.sock` or `fd:3`; port 0 is chosen by the system."),
            .optional("reuse_port", .boolean, default: "false", "Lets a second process listen on the same address."),
            .optional(
                "ipv6_only", .boolean, default: "false",
                "Whether `[::]` accepts IPv6 alone; otherwise IPv4 too, unless another listener has the port for it."),
            .optional("tls", .block(of: ListenerTLS.self), "TLS and its certificates; clear text if absent."),
            .optional(
                "http2", .boolean, default: "true",
                "HTTP/2 in addition to HTTP/1: by ALPN with TLS, with prior knowledge in clear text."),
            .optional(
                "proxy_protocol", .boolean, default: "false",
                "Every connection begins with a PROXY protocol header, version 1 or 2, from a trusted proxy."),
            .optional(
                "trusted", .boolean, default: "false",
                "Whether peers of a Unix socket are trusted like those in `trusted_proxies`."),
            .optional(
                "redirect_to_https", .either([.boolean, .integer(1...65_535)]), default: "false",
                "Redirects every request with 308 to the same URL with https and this port; `true` is 443."),
            .optional(
                "health", .block(of: HealthPath.self),
                "The readiness endpoint of this listener; that of `server` if absent."),
            .optional("owner", .text, "The user who owns a Unix socket, by name or number."),
            .optional("group", .text, "The group that owns a Unix socket, by name or number."),
            .optional(
                "mode", .pattern("^0?[0-7]{3}$"), "A Unix socket's permission bits in octal digits, such as `\"0660\"`."
            ),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let reusePort = reader.optional("reuse_port", default: false)
        let isIPv6Only = reader.optional("ipv6_only", default: false)
        let tls: ListenerTLS? = reader.block("tls")
        let offersHTTP2 = reader.optional("http2", default: true)
        let acceptsProxyProtocol = reader.optional("proxy_protocol", default: false)
        let isTrusted = reader.optional("trusted", default: false)
        let redirect: Located<RedirectPort>? = reader.optional("redirect_to_https")
        let health: HealthPath? = reader.block("health")
        let permissions = SocketFilePermissions(from: &reader)
        self.init(address: try reader.required("address"), reusePort: reusePort)
        self.isIPv6Only = isIPv6Only
        self.tls = tls
        self.offersHTTP2 = offersHTTP2
        self.acceptsProxyProtocol = acceptsProxyProtocol
        redirectsToHTTPSPort = redirect?.value.number
        self.health = health
        if case .unix = address.value {
            socketFile = permissions
        } else {
            rejectPermissions(&reader)
            if let node = reader.node("trusted"), isTrusted {
                reader.error(
                    .configConflictingKeys, at: node.location,
                    "trusted: applies to Unix sockets only; list the peers of an address in server.trusted_proxies"
                )
            }
        }
        self.isTrusted = isTrusted
        if let redirect, redirect.value.number != nil, reader.has("tls") {
            reader.error(
                .configConflictingKeys, at: redirect.location,
                "redirect_to_https: this listener uses TLS: redirect from a listener in clear text")
        }
    }

    /// The listener of a configuration without `listen`.
    static func standard(at location: SourceLocation) -> ListenerConfiguration {
        ListenerConfiguration(address: Located(.ip(host: "127.0.0.1", port: 8080), at: location), reusePort: false)
    }

    private func rejectPermissions(_ reader: inout ConfigurationReader) {
        for key in ["owner", "group", "mode"] {
            guard let node = reader.node(key) else { continue }
            reader.error(
                .configConflictingKeys, at: node.location,
                "\(key): applies only to a Unix socket that the gateway creates (unix:…)")
        }
    }
}

/// `true`, `false` or a port.
private struct RedirectPort: ConfigurationValue {
    let number: UInt16?

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        switch try node.plainText(expecting: "true, false or a port") {
        case "true": number = 443
        case "false": number = nil
        case let text where Int(text) != nil:
            number = UInt16(truncatingIfNeeded: try Int(decoding: node, in: 1...65_535))
        case let other: throw node.error(.configWrongType, "must be true, false or a port, not \(quoted(other))")
        }
    }
}

extension SocketFilePermissions {
    /// Reads `owner`, `group` and `mode` of a listener; `nil` if none of them is set.
    fileprivate init?(from reader: inout ConfigurationReader) {
        self.init()
        owner = reader.optional("owner", as: AccountName.self)?.text
        group = reader.optional("group", as: AccountName.self)?.text
        mode = reader.optional("mode", as: FileMode.self)?.bits
        if owner == nil, group == nil, mode == nil { return nil }
    }
}

/// The name or number of a system user or group.
private struct AccountName: ConfigurationValue {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        guard (1...256).contains(text.utf8.count), !text.utf8.contains(where: ":/,".utf8.contains) else {
            throw node.error(.configBadValue, "\(quoted(text)) is not a name or a number")
        }
    }
}

/// Three octal digits with an optional leading zero.
private struct FileMode: ConfigurationValue {
    let bits: UInt16

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        let digits = text.utf8.count == 4 && text.hasPrefix("0") ? text.dropFirst() : text[...]
        guard digits.utf8.count == 3, digits.utf8.allSatisfy({ (0x30...0x37).contains($0) }),
            let bits = UInt16(digits, radix: 8)
        else {
            throw node.error(.configBadValue, "\(quoted(text)) is not an octal mode such as \"0660\"")
        }
        self.bits = bits
    }
}
