/// A validated absolute `http` or `https` URL, for calls of a provider.
///
/// User information and fragments are rejected; the host is lowercased.
@frozen public struct URLText: Hashable, Sendable, CustomStringConvertible {
    public let text: String
    /// `http` or `https`.
    public let scheme: String
    /// A lower-case name, or an address; IPv6 without brackets.
    public let host: String
    /// The explicit port, or the default port of the scheme.
    public let port: UInt16
    /// Path and query, beginning with `/`.
    public let target: String

    /// `nil` if the text is not such a URL.
    public init?(_ text: String) {
        guard text.utf8.count <= 2048,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"\"<>\\^`{|}#".utf8.contains($0) }),
            let (scheme, rest) = Self.splitScheme(text)
        else { return nil }
        let authority = rest.prefix { $0 != 0x2F && $0 != 0x3F }
        guard let (host, port) = HostAndPort.parse(Array(authority), allowingFinalDot: true) else { return nil }
        let tail = String(decoding: rest.dropFirst(authority.count), as: UTF8.self)
        self.text = text
        self.scheme = scheme
        self.host = host
        self.port = port ?? (scheme == "https" ? 443 : 80)
        target = tail.hasPrefix("/") ? tail : "/\(tail)"
    }

    private static let placeholder = URLText(text: "http://[::]/", scheme: "http", host: "::", port: 80, target: "/")

    private init(text: String, scheme: String, host: String, port: UInt16, target: String) {
        self.text = text
        self.scheme = scheme
        self.host = host
        self.port = port
        self.target = target
    }

    /// Whether a response can be trusted: `https`, or a loopback address.
    public var isTrustworthy: Bool { scheme == "https" || HostAndPort.isLoopback(host) }

    /// The origin as browsers write it (RFC 6454 §6.2): without the default port of the scheme.
    public var origin: String {
        let host = host.contains(":") ? "[\(host)]" : host
        return "\(scheme)://\(host)\(port == (scheme == "https" ? 443 : 80) ? "" : ":\(port)")"
    }

    public var description: String { text }

    private static func splitScheme(_ text: String) -> (String, ArraySlice<UInt8>)? {
        let bytes = Array(text.utf8)
        for scheme in ["https", "http"] where bytes.starts(with: "\(scheme)://".utf8) {
            return (scheme, bytes.dropFirst(scheme.utf8.count + 3))
        }
        return nil
    }
}

extension URLText: ExpressibleByStringLiteral {
    /// For defaults in source code. Traps if the literal is not a URL.
    public init(stringLiteral value: StaticString) {
        let url = URLText("\(value)")
        precondition(url != nil, "\(value) is not an absolute http(s) URL")
        self = url ?? .placeholder
    }
}

extension URLText: ConfigurationValue {
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let url = URLText(try node.text()) else {
            throw node.error(
                .configBadURL,
                "must be an absolute URL such as https://example.com, without user information or '#'")
        }
        self = url
    }
}
