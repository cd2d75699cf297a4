public import MartletConfig

/// Where a service is: an `https` URL, an `http` URL of a loopback address, or a Unix socket.
public struct ServiceAddress: Sendable, Equatable, ConfigurationValue {
    /// The URL to call; for a socket its host is only named in requests.
    let url: URLText
    /// The path of a Unix socket; `nil` for TCP.
    let socket: String?

    /// `unix:/run/partner.sock` calls `/` there, `unix:/run/partner.sock:/verify` another path.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard text.hasPrefix("unix:") else {
            url = try URLText(decoding: node)
            socket = nil
            return
        }
        let parts = text.dropFirst("unix:".count).split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let target = parts.count == 2 ? String(parts[1]) : "/"
        guard let path = parts.first, path.hasPrefix("/"), path.utf8.count <= 107, target.hasPrefix("/"),
            path.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), let url = URLText("http://localhost\(target)")
        else {
            throw node.error(
                .configBadURL, "must be unix: with an absolute path of at most 107 bytes, and a path to call behind ':'"
            )
        }
        self.url = url
        socket = String(path)
    }

    /// Whether a response can be trusted.
    var isTrustworthy: Bool { socket != nil || url.isTrustworthy }

    /// The service as identities name it, where it names no issuer itself; it contains no secret.
    var issuer: String { socket.map { "unix:\($0)" } ?? url.origin }
}
