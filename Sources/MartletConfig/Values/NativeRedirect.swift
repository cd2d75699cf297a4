/// Where an app gets the result of a sign-in in a browser (RFC 8252 §7.1, §7.2): a URL of a scheme of its own, such as
/// `com.example.app:/cb`, an `https` URL that it has claimed, or an `http` URL of a loopback address (§7.3).
struct NativeRedirect: TextSpelling {
    static let maximumBytes = 512
    /// Schemes that browsers run or read themselves; none of them has a dot, but the message should say why.
    private static let forbidden: Set<String> = ["javascript", "data", "file", "blob", "vbscript", "about"]

    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        if let reason = Self.validationError(in: text) {
            throw node.error(.configBadURL, "\(quoted(text)) \(reason)")
        }
    }

    /// Why a text is not such a URL; `nil` if it is one.
    static func validationError(in text: String) -> String? {
        guard text.utf8.count <= maximumBytes else { return "is longer than \(maximumBytes) bytes" }
        guard !text.utf8.contains(UInt8(ascii: "#")) else { return "has a fragment, which no redirect may have" }
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"\"<>\\^`{|}".utf8.contains($0) }) else {
            return "has a character that no URL has: percent-encode it"
        }
        let scheme = text.prefix { $0 != ":" }
        if scheme == "https" {
            return URLText(text) == nil ? "must be an https URL without user information" : nil
        }
        if scheme == "http" {
            guard let url = URLText(text), url.isTrustworthy else {
                return "must be https: http is accepted only of a loopback address such as http://127.0.0.1/cb"
            }
            return nil
        }
        guard !forbidden.contains(scheme.lowercased()) else {
            return "has a scheme that browsers handle themselves"
        }
        guard scheme.utf8.contains(UInt8(ascii: ".")), isScheme(scheme), text.dropFirst(scheme.count).hasPrefix(":/")
        else {
            return "must be an https URL, or a URL of a scheme of the app's own with a dot, such as com.example.app:/cb"
        }
        return nil
    }

    /// RFC 3986 §3.1, in lower case, as browsers and systems write it.
    private static func isScheme(_ scheme: Substring) -> Bool {
        let isLetter = scheme.utf8.first.map { (0x61...0x7A).contains($0) } ?? false
        return isLetter && scheme.utf8.last != UInt8(ascii: ".")
            && scheme.utf8.allSatisfy { HostAndPort.isLetterOrDigit($0) || "+-.".utf8.contains($0) }
    }
}
