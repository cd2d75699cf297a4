/// The origin of a web page as browsers send it in `Origin` (RFC 6454 §6.2): lower case, without the scheme's own port.
struct WebOrigin: TextSpelling {
    let text: String
    /// A lower-case name, or an address; IPv6 without brackets.
    let host: String
    let isSecure: Bool
    /// Whether its pages cannot be forged: `https`, or a loopback address.
    let isTrustworthy: Bool

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let written = try node.text()
        guard written != "*" else {
            throw node.error(.configBadURL, "'*' would be every page: list the origins")
        }
        guard let url = URLText(written), !written.dropFirst("\(url.scheme)://".count).contains(where: "/?".contains)
        else {
            throw node.error(
                .configBadURL, "\(quoted(written)) is not an origin such as https://app.example.com, without a path")
        }
        host = url.host
        let name = host.utf8.contains(0x3A) ? "[\(host)]" : host
        isSecure = url.scheme == "https"
        text = "\(url.scheme)://\(name)\(url.port == (isSecure ? 443 : 80) ? "" : ":\(url.port)")"
        isTrustworthy = url.isTrustworthy
    }
}
