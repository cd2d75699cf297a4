/// The `path:` of a route's match: `/v1/**`.
struct PathGlob: TextSpelling {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        if let reason = Self.validationError(in: text) {
            throw node.error(.configBadPattern, "\(quoted(text)) \(reason)")
        }
    }

    /// The pattern with its other characters percent-encoded, if they are letters of other languages.
    private static func encodingHint(for text: String) -> String {
        let ascii = text.utf8.filter { $0 < 0x80 }
        guard ascii.count < text.utf8.count, text.utf8.count <= 64,
            ascii.allSatisfy({ (0x21...0x7E).contains($0) && !"?#\\".utf8.contains($0) })
        else { return "" }
        let digits = Array("0123456789ABCDEF")
        let encoded = text.utf8.map { byte -> String in
            byte < 0x80
                ? String(UnicodeScalar(byte)) : "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 0xF)])"
        }
        return " (did you mean '\(encoded.joined())'?)"
    }

    /// Why a text is not a path pattern that a request can match; `nil` if it is one.
    static func validationError(in text: String) -> String? {
        guard text.hasPrefix("/") else { return "must begin with '/'" }
        guard text.utf8.count <= 2048 else { return "is too long" }
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"?#\\".utf8.contains($0) }) else {
            return "has a character that no normalized path has: percent-encode it, and leave the query out"
                + encodingHint(for: text)
        }
        let segments = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            let name = segment.prefix { $0 != ";" }
            if segment.isEmpty && !isLast { return "has an empty segment" }
            if name == "." || name == ".." { return "has a '.' or '..' segment, which is never matched" }
            if segment.contains("**") && segment != "**" {
                return "has '**' next to other characters: it must be a whole segment"
            }
        }
        return hasBadEscape(text) ? "has a '%' without two hexadecimal digits" : nil
    }

    private static func hasBadEscape(_ text: String) -> Bool {
        text.split(separator: "%", omittingEmptySubsequences: false).dropFirst()
            .contains { rest in rest.prefix(2).count < 2 || !rest.prefix(2).allSatisfy(\.isHexDigit) }
    }
}

/// The prefix that `rewrite` removes: `/v1`.
struct PathPrefix: TextSpelling {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        if let reason = PathGlob.validationError(in: text) {
            throw node.error(.configBadPattern, "\(quoted(text)) \(reason)")
        }
        guard !text.hasSuffix("/"), !text.contains("*") else {
            throw node.error(
                .configBadPattern, "\(quoted(text)) must be plain segments such as /v1, without '*' or a trailing '/'")
        }
    }
}

/// One of the `hosts:` of a route's match: a name, `*.example.com`, or an address.
struct HostPattern: TextSpelling {
    /// Lower case.
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let written = try node.text()
        let host = written.hasPrefix("*.") ? String(written.dropFirst(2)) : written
        guard let (name, port) = HostAndPort.parse(Array(host.utf8)) else {
            throw node.error(
                .configBadPattern,
                "\(quoted(written)) is not a host such as api.example.com, or *.example.com for its subdomains")
        }
        guard port == nil else {
            throw node.error(.configBadPattern, "\(quoted(written)) has a port, which is not matched: leave it out")
        }
        guard !written.hasPrefix("*.") || HostAndPort.addressBytes(name) == nil else {
            throw node.error(.configBadPattern, "\(quoted(written)) puts a wildcard before an address")
        }
        text = written.lowercased()
    }
}

/// One of the `methods:` of a route's match.
struct MethodName: TextSpelling {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        guard (1...32).contains(text.utf8.count), text.utf8.allSatisfy(HeaderName.isTokenByte) else {
            throw node.error(.configBadValue, "\(quoted(text)) is not a method")
        }
        guard text == text.uppercased() else {
            throw node.error(
                .configBadValue, "methods are case-sensitive: \(quoted(text)) (did you mean '\(text.uppercased())'?)")
        }
    }
}

/// The name of a provider, an upstream or a route, which is used in logs, metrics and store keys.
@frozen package struct EntityName {
    /// Why a text is not such a name; `nil` if it is one.
    package static func validationError(in text: String) -> String? {
        let isSafe =
            (1...64).contains(text.utf8.count) && text.utf8.first != 0x2D && text.utf8.first != 0x2E
            && text.utf8.allSatisfy {
                HostAndPort.isLetterOrDigit($0) || (0x41...0x5A).contains($0) || "_-.".utf8.contains($0)
            }
        return isSafe
            ? nil : "is not a valid name: use 1 to 64 letters, digits, '_', '-' and '.', not beginning with '-' or '.'"
    }
}
