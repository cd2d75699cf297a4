/// Which header names belong to the gateway (design.md 5, security.md 8).
enum ReservedNames {
    /// A name as servers that fold names see it: lower case, `-` for `_` and `.`.
    static func folded(_ name: String) -> String {
        String(decoding: name.utf8.map { folded($0) }, as: UTF8.self)
    }

    private static func folded(_ byte: UInt8) -> UInt8 {
        byte == UInt8(ascii: "_") || byte == .dot ? UInt8(ascii: "-") : byte.lowercased
    }

    /// Fields that the gateway writes itself or that frame messages: a route can neither set nor remove them.
    private static let untouchable: Set<String> = [
        "authorization", "connection", "content-encoding", "content-length", "content-type", "cookie", "date", "expect",
        "forwarded", "host", "http2-settings", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "proxy-connection", "te", "trailer", "traceparent", "tracestate", "transfer-encoding", "upgrade", "via",
        "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id",
    ]

    /// Why a route may not set or remove a header, if it may not.
    static func problem(with name: String) -> String? {
        guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter) else { return "is not a header name" }
        guard name.utf8.count <= 256 else { return "is longer than 256 bytes" }
        if untouchable.contains(folded(name)) { return "is the gateway's own or part of the message's framing" }
        return nil
    }
}
