/// A header that a route sets or removes.
struct HeaderName: ConfigurationValue {
    /// As written.
    let text: String
    /// Lower case.
    let lowercased: String

    /// Names whose meaning ends at this hop, or that frame the message (RFC 9110 §7.6.1), or that the gateway owns.
    private static let untouchable = Set(untouchableNames.map { letters(of: $0) })

    private static let untouchableNames = [
        "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-authenticate",
        "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id",
    ]

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        try self.init(Located(try node.text(), at: node.location))
    }

    /// Checks a name that stands as a value or as a key.
    init(_ name: Located<String>) throws(ConfigurationError) {
        text = name.value
        lowercased = text.lowercased()
        guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy(Self.isTokenByte) else {
            throw ConfigurationError(.configBadHeader, at: name.location, "\(quoted(text)) is not a header name")
        }
        guard !letters.isEmpty else {
            throw ConfigurationError(
                .configBadHeader, at: name.location, "\(quoted(text)) has no letter or digit to be known by")
        }
        guard !Self.untouchable.contains(letters) else {
            throw ConfigurationError(
                .configBadHeader, at: name.location,
                "\(quoted(text)) belongs to the gateway and cannot be set or removed")
        }
    }

    /// The spelling under which upstreams may confuse two names: case and `_` for `-` do not count.
    var folded: String { lowercased.split(separator: "_", omittingEmptySubsequences: false).joined(separator: "-") }

    /// The letters and digits of the name, in lower case: how requests' fields are compared with it.
    var letters: String { Self.letters(of: lowercased) }

    private static func letters(of name: String) -> String {
        String(decoding: name.utf8.filter { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }, as: UTF8.self)
    }

    /// RFC 9110 §5.6.2.
    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
