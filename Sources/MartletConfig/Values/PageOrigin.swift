/// The origin of a page that may use the gateway from elsewhere: of a web page, or of a web view in an app, whose scheme
/// may be any (`capacitor://localhost`; RFC 6454 §4). Compared byte by byte with what is sent in `Origin`.
struct PageOrigin: TextSpelling {
    let text: String
    /// Whether its pages cannot be forged by the network: anything but `http` at an address that is not a loopback one.
    let isTrustworthy: Bool

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let written = try node.text()
        let scheme = written.prefix { $0 != ":" }
        if scheme == "http" || scheme == "https" || !Self.isOrigin(written, scheme: scheme) {
            let web = try WebOrigin(decoding: node)
            (text, isTrustworthy) = (web.text, web.isTrustworthy)
        } else {
            (text, isTrustworthy) = (written, true)
        }
    }

    /// Whether a text is `scheme://host`, perhaps with a port, as web views send it: the scheme in lower case, no path.
    private static func isOrigin(_ text: String, scheme: Substring) -> Bool {
        guard let first = scheme.utf8.first, (0x61...0x7A).contains(first), scheme.utf8.count <= 64,
            scheme.utf8.allSatisfy({ HostAndPort.isLetterOrDigit($0) || "+-.".utf8.contains($0) }),
            text.dropFirst(scheme.count).hasPrefix("://")
        else { return false }
        let rest = Array(text.utf8.dropFirst(scheme.utf8.count + 3))
        return rest.count <= 255 && HostAndPort.parse(rest) != nil
    }
}
