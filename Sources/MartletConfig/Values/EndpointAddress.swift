/// The address of one endpoint of an upstream.
@frozen package enum EndpointAddress: Sendable, Hashable {
    /// `http://host:port`; the host may be a name or an address literal without brackets.
    case http(host: String, port: UInt16)
    /// `https://host:port`: the same with TLS.
    case https(host: String, port: UInt16)
    /// `h2c://host:port`: HTTP/2 in clear text with prior knowledge (RFC 9113 §3.3).
    case h2c(host: String, port: UInt16)
    /// `unix:/path`.
    case unix(path: String)
    /// `builtin:echo`: echoes the request as JSON.
    case echo

    /// The host to resolve, and the port; `nil` if there is no host.
    package var hostAndPort: (host: String, port: UInt16)? {
        switch self {
        case .http(let host, let port), .https(let host, let port), .h2c(let host, let port): (host, port)
        case .unix, .echo: nil
        }
    }
}

extension EndpointAddress: ConfigurationValue, Spelling {
    /// `http://host[:port]`, the same with `https` or `h2c`, `unix:/path` or `builtin:echo`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        let scheme = text.prefix { $0 != ":" }
        let rest = text.dropFirst(scheme.count + 1)
        switch scheme {
        case "http", "https", "h2c":
            guard rest.hasPrefix("//"),
                let (host, port) = HostAndPort.parse(Array(rest.dropFirst(2).utf8), allowingFinalDot: true),
                port != 0
            else {
                throw node.error(
                    .configBadAddress,
                    "an \(scheme) endpoint is \(scheme)://host or \(scheme)://host:port, without user, path, query or fragment"
                )
            }
            switch scheme {
            case "https": self = .https(host: host, port: port ?? 443)
            case "h2c": self = .h2c(host: host, port: port ?? 80)
            default: self = .http(host: host, port: port ?? 80)
            }
        case "unix":
            guard let path = SocketAddress.socketPath(rest, relativeTo: node.location.file) else {
                throw node.error(.configBadAddress, "\(quoted(text)) is not a socket path of at most 107 bytes")
            }
            self = .unix(path: path)
        case "builtin":
            guard rest == "echo" else {
                throw node.error(
                    .configBadAddress, "unknown endpoint \(quoted(text)): the only built-in one is builtin:echo")
            }
            self = .echo
        default:
            throw node.error(
                .configBadAddress,
                "an endpoint is http://host:port, https://host:port, h2c://host:port, unix:/path or builtin:echo")
        }
    }
}
