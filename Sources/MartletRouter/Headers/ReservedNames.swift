import MartletHTTP

/// The header names that routes must not set or remove.
enum ReservedNames {
    /// The letters and digits of a name, which are all that upstreams compare if they fold names.
    static func letters(of name: String) -> String {
        String(decoding: FieldLetters.of(name), as: UTF8.self)
    }

    /// A name in lower case with `-` for `_` and `.`: names with the same result become the same CGI variable.
    static func dashed(_ name: String) -> String {
        String(decoding: name.utf8.map { $0 == 0x5F || $0 == .dot ? 0x2D : $0.lowercased }, as: UTF8.self)
    }

    /// The operation of a route on a header.
    enum Use { case set, remove }

    /// Fields that frame the message or that the gateway writes.
    private static let managed = lettersOf([
        "connection", "content-length", "expect", "forwarded", "host", "http2-settings", "keep-alive",
        "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade",
        "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id",
    ])

    /// Client fields that must not be set: a set name is reserved, so the client's field would be removed on every
    /// route.
    private static let clientFields = lettersOf([
        "accept", "authorization", "content-encoding", "content-type", "cookie", "date", "if-match", "if-none-match",
        "origin", "range", "traceparent", "tracestate", "user-agent",
    ])

    private static func lettersOf(_ names: [String]) -> Set<String> { Set(names.map { letters(of: $0) }) }

    /// Why a route must not set or remove a header; `nil` if it may.
    static func validationError(of name: String, _ use: Use) -> String? {
        guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter) else { return "is not a header name" }
        guard name.utf8.count <= 256 else { return "is longer than 256 bytes" }
        let letters = letters(of: name)
        if letters.isEmpty { return "has no letter or digit" }
        if managed.contains(letters) { return "is managed by the gateway or part of the message framing" }
        if use == .set, clientFields.contains(letters) {
            return "belongs to the client: setting it would remove it on every route"
        }
        return nil
    }
}
