extension EndpointAddress: ConfigurationValue {
    /// `http://host[:port]`, `unix:/path` or `builtin:echo`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        let scheme = text.prefix { $0 != ":" }
        let rest = text.dropFirst(scheme.count + 1)
        switch scheme {
        case "http":
            guard rest.hasPrefix("//"), let (host, port) = HostAndPort.parse(Array(rest.dropFirst(2).utf8)), port != 0
            else {
                throw node.error(
                    .configBadAddress,
                    "an http endpoint is http://host or http://host:port, without user, path, query or fragment")
            }
            self = .http(host: host, port: port ?? 80)
        case "unix":
            guard let path = SocketAddress.socketPath(rest, relativeTo: node.location.file) else {
                throw node.error(.configBadAddress, "\(quoted(text)) is not a socket path of at most 107 bytes")
            }
            self = .unix(path: path)
        case "builtin":
            guard rest == "echo" else {
                throw node.error(.configBadAddress, "there is no \(quoted(text)): the only one is builtin:echo")
            }
            self = .echo
        case "https", "h2c":
            throw node.error(.configNotSupported, "\(scheme) endpoints are not supported yet")
        default:
            throw node.error(.configBadAddress, "an endpoint is http://host:port, unix:/path or builtin:echo")
        }
    }
}
