/// A header that a route sets or removes.
struct HeaderName: TextSpelling {
    /// As written.
    let text: String
    let lowercased: String

    /// Hop-by-hop and framing fields (RFC 9110 §7.6.1), and fields that the gateway writes.
    private static let managed = Set(managedNames.map { letters(of: $0) })

    private static let managedNames = [
        "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-authenticate",
        "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id",
    ]

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        try self.init(Located(try node.text(), at: node.location))
    }

    /// Checks a name from a value or a key.
    init(_ name: Located<String>) throws(ConfigurationError) {
        text = name.value
        lowercased = text.lowercased()
        guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy(Self.isTokenByte) else {
            throw ConfigurationError(.configBadHeader, at: name.location, "\(quoted(text)) is not a header name")
        }
        guard !letters.isEmpty else {
            throw ConfigurationError(
                .configBadHeader, at: name.location, "\(quoted(text)) has no letter or digit")
        }
        guard !Self.managed.contains(letters) else {
            throw ConfigurationError(
                .configBadHeader, at: name.location,
                "\(quoted(text)) is managed by the gateway and cannot be set or removed")
        }
    }

    /// The name as upstreams may compare it: ignoring case, with `_` equal to `-`.
    var folded: String { lowercased.split(separator: "_", omittingEmptySubsequences: false).joined(separator: "-") }

    /// The letters and digits of the name, in lower case, by which request fields are compared with it.
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

/// The name of such a header in lower case.
struct FoldedHeaderName: TextSpelling {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try HeaderName(decoding: node).lowercased
    }
}

/// The syntax of field names (RFC 9110 §5.1).
package enum FieldNameSyntax {
    /// Whether a text is the name of a field, of at most 128 bytes.
    package static func isValid(_ name: String) -> Bool {
        (1...128).contains(name.utf8.count) && name.utf8.allSatisfy(HeaderName.isTokenByte)
    }
}
