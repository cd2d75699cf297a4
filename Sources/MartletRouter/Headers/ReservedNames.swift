import MartletHTTP

/// Which header names belong to the gateway.
enum ReservedNames {
    /// The letters and digits of a name: to upstreams that fold names, all that there is of it.
    static func letters(of name: String) -> String {
        String(decoding: FieldLetters.of(name), as: UTF8.self)
    }

    /// A name in lower case with `-` for `_` and `.`: what an upstream's variable is named after.
    static func dashed(_ name: String) -> String {
        String(decoding: name.utf8.map { $0 == 0x5F || $0 == .dot ? 0x2D : $0.lowercased }, as: UTF8.self)
    }

    /// What a route wants with a header.
    enum Use { case set, remove }

    /// Fields that frame the message or that the gateway writes itself.
    private static let untouchable = lettersOf([
        "connection", "content-length", "expect", "forwarded", "host", "http2-settings", "keep-alive",
        "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade",
        "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id",
    ])

    /// Fields of the client's own that setting would take away from every route, since what is set is reserved.
    private static let clientsOwn = lettersOf([
        "accept", "authorization", "content-encoding", "content-type", "cookie", "date", "if-match", "if-none-match",
        "origin", "range", "traceparent", "tracestate", "user-agent",
    ])

    private static func lettersOf(_ names: [String]) -> Set<String> { Set(names.map { letters(of: $0) }) }

    /// Why a route may not set or remove a header, if it may not.
    static func problem(with name: String, _ use: Use) -> String? {
        guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter) else { return "is not a header name" }
        guard name.utf8.count <= 256 else { return "is longer than 256 bytes" }
        let letters = letters(of: name)
        if letters.isEmpty { return "has no letter or digit" }
        if untouchable.contains(letters) { return "is the gateway's own or part of the message's framing" }
        if use == .set, clientsOwn.contains(letters) {
            return "is the client's: setting it would remove it on every route"
        }
        return nil
    }
}
