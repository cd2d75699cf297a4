/// Which header names belong to the gateway.
enum ReservedNames {
    /// A name as servers that fold names see it: lower case, `-` for `_` and `.`.
    static func folded(_ name: String) -> String {
        String(decoding: name.utf8.map { folded($0) }, as: UTF8.self)
    }

    private static func folded(_ byte: UInt8) -> UInt8 {
        byte == UInt8(ascii: "_") || byte == .dot ? UInt8(ascii: "-") : byte.lowercased
    }

    /// What a route wants with a header.
    enum Use { case set, remove }

    /// Fields that frame the message or that the gateway writes itself.
    private static let untouchable: Set<String> = [
        "connection", "content-length", "expect", "forwarded", "host", "http2-settings", "keep-alive",
        "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade",
        "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id",
    ]

    /// Fields of the client's own that setting would take away from every route, since what is set is reserved.
    private static let clientsOwn: Set<String> = [
        "accept", "authorization", "content-encoding", "content-type", "cookie", "date", "if-match", "if-none-match",
        "origin", "range", "traceparent", "tracestate", "user-agent",
    ]

    /// Why a route may not set or remove a header, if it may not.
    static func problem(with name: String, _ use: Use) -> String? {
        guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter) else { return "is not a header name" }
        guard name.utf8.count <= 256 else { return "is longer than 256 bytes" }
        let folded = folded(name)
        if untouchable.contains(folded) { return "is the gateway's own or part of the message's framing" }
        if use == .set, clientsOwn.contains(folded) {
            return "is the client's: setting it would remove it on every route"
        }
        return nil
    }
}
