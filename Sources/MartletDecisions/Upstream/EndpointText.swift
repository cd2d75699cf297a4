package import MartletConfig

/// Endpoints as text.
package enum EndpointText {
    /// `http://127.0.0.1:9000`, `unix:/path`, `builtin:echo`.
    package static func url(_ address: EndpointAddress) -> String {
        switch address {
        case .http(let host, let port): "http://\(authority(host, port, isSecure: false))"
        case .https(let host, let port): "https://\(authority(host, port, isSecure: true))"
        case .h2c(let host, let port): "h2c://\(authority(host, port, isSecure: false))"
        case .unix(let path): "unix:\(path)"
        case .echo: "builtin:echo"
        }
    }

    /// The `Host` value that names the endpoint.
    package static func host(_ address: EndpointAddress) -> String {
        switch address {
        case .http(let host, let port), .https(let host, let port), .h2c(let host, let port):
            authority(host.withoutFinalDot, port, isSecure: address.isSecure)
        case .unix, .echo: "localhost"
        }
    }

    static func authority(_ host: String, _ port: UInt16, isSecure: Bool) -> String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }
}

extension EndpointAddress {
    /// Whether it uses TLS.
    package var isSecure: Bool { if case .https = self { true } else { false } }
}
