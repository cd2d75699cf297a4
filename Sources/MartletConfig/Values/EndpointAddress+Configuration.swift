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
