internal import MartletCore

/// One entry of `server.listen`.
@frozen package struct ListenerConfiguration: KeyedBlock {
    package var address: Located<SocketAddress>
    package var reusePort: Bool
    package var isIPv6Only = false
    package var tls: ListenerTLS?
    package var offersHTTP2 = true
    package var acceptsProxyProtocol = false
    package var isTrusted = false
    /// The port of the https URL that every request is redirected to (308); `nil` serves requests.
    package var redirectsToHTTPSPort: UInt16?
    package var health: HealthPath?
    /// Owner and mode of a Unix socket; `nil` leaves them to the process and its umask.
    package var socketFile: SocketFilePermissions?

    package init(address: Located<SocketAddress>, reusePort: Bool) {
        self.address = address
        self.reusePort = reusePort
    }

    /// Whether the listener accepts IPv4 if it is one for `[::]`: unless it is not to, or another of the listeners has an
    /// IPv4 address with its port.
    package func acceptsIPv4(beside listeners: [ListenerConfiguration]) -> Bool {
        guard !isIPv6Only, case .ip(_, let port) = address.value else { return false }
        return !listeners.contains { other in
            guard case .ip(let host, port) = other.address.value else { return false }
            return port != 0 && !host.contains(":")
        }
    }

    init() { self.init(at: .none) }

    init(at location: SourceLocation) {
        self.init(address: Located(.ip(host: "127.0.0.1", port: 8080), at: location), reusePort: false)
    }

    static let keys: [ConfigurationKey<Self>] = [
        .required(
            "address", \.address, endsBlock: true,
            "`127.0.0.1:8080`, `[::]:8443`, `unix:/run/martlet.sock` or `fd:3`; port 0 is chosen by the system."),
        .key("reuse_port", \.reusePort, "Lets a second process listen on the same address."),
        .key(
            "ipv6_only", \.isIPv6Only,
            "Whether `[::]` accepts IPv6 alone; otherwise IPv4 too, unless another listener has the port for it."),
        .block("tls", \.tls, "TLS and its certificates; clear text if absent."),
        .key(
            "http2", \.offersHTTP2,
            "HTTP/2 in addition to HTTP/1: by ALPN with TLS, with prior knowledge in clear text."),
        .key(
            "proxy_protocol", \.acceptsProxyProtocol,
            "Every connection begins with a PROXY protocol header, version 1 or 2, from a trusted proxy."),
        .key("trusted", \.isTrusted, "Whether peers of a Unix socket are trusted like those in `trusted_proxies`."),
        .key(
            "redirect_to_https", \.redirectsToHTTPSPort, as: RedirectPort.self,
            "Redirects every request with 308 to the same URL with https and this port; `true` is 443."),
        .block("health", \.health, "The readiness endpoint of this listener; that of `server` if absent."),
        .key(
            "owner", \.permissions.owner, where: .account, "The user who owns a Unix socket, by name or number."),
        .key(
            "group", \.permissions.group, where: .account,
            "The group that owns a Unix socket, by name or number."),
        .key(
            "mode", \.permissions.mode, as: FileMode?.self,
            "A Unix socket's permission bits in octal digits, such as `\"0660\"`."),
        .check { $0.check(&$1) },
    ]

    /// Those of the file of a Unix socket, of which there are none until one is set.
    private var permissions: SocketFilePermissions {
        get { socketFile ?? SocketFilePermissions() }
        set { socketFile = newValue }
    }

    private func check(_ reader: inout ConfigurationReader) {
        var isUnixSocket = false
        if case .unix = address.value { isUnixSocket = true }
        for key in ["owner", "group", "mode"] where !isUnixSocket {
            reader.reject(
                key, .configConflictingKeys, "applies only to a Unix socket that the gateway creates (unix:…)")
        }
        if isTrusted, !isUnixSocket {
            reader.reject(
                "trusted", .configConflictingKeys,
                "applies to Unix sockets only; list the peers of an address in server.trusted_proxies")
        }
        if redirectsToHTTPSPort != nil, reader.has("tls") {
            reader.reject(
                "redirect_to_https", .configConflictingKeys,
                "this listener uses TLS: redirect from a listener in clear text")
        }
    }
}

/// `true`, `false` or a port.
private struct RedirectPort: ConfigurationValue, Spelling {
    static let shape = ConfigurationGrammar.Shape.either([.boolean, UInt16.shape])
    static func text(of port: UInt16?) -> String? { port.map { "\($0)" } ?? "false" }
    let content: UInt16?

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        switch try node.plainText(expecting: "true, false or a port") {
        case "true": content = 443
        case "false": content = nil
        case let text where Int(text) != nil: content = try UInt16(decoding: node)
        case let other: throw node.error(.configWrongType, "must be true, false or a port, not \(quoted(other))")
        }
    }
}

extension TextRule {
    /// The name or number of a system user or group.
    fileprivate static let account = TextRule(
        .configBadValue, { (1...256).contains($0.utf8.count) && !$0.utf8.contains(where: ":/,".utf8.contains) },
        { "\(quoted($0)) is not a name or a number" })
}

/// Three octal digits with an optional leading zero.
private struct FileMode: Spelling {
    static let shape = ConfigurationGrammar.Shape.pattern("^0?[0-7]{3}$")
    let content: UInt16

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        let digits = text.utf8.count == 4 && text.hasPrefix("0") ? text.dropFirst() : text[...]
        guard digits.utf8.count == 3, digits.utf8.allSatisfy({ (0x30...0x37).contains($0) }),
            let bits = UInt16(digits, radix: 8)
        else {
            throw node.error(.configBadValue, "\(quoted(text)) is not an octal mode such as \"0660\"")
        }
        content = bits
    }
}

/// `owner`, `group` and `mode` of a Unix socket.
@frozen package struct SocketFilePermissions: Sendable, Hashable {
    package var owner: String?
    package var group: String?
    /// Permission bits, such as `0o660`.
    package var mode: UInt16?

    package init() {}
}
