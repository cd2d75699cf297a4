internal import MartletHTTP

/// What an exchange is, if a proxy asks by it about a client's request; empty for every other exchange.
struct CheckMarks: OptionSet, Sendable {
    let rawValue: UInt16

    static let isCheck = CheckMarks(rawValue: 1)
    /// 400, 429 and 503 are 403.
    static let deniesAlike = CheckMarks(rawValue: 2)
    /// A navigation without a credential is redirected to the sign-in page.
    static let redirectsBrowsers = CheckMarks(rawValue: 4)
    /// The described request opens a WebSocket.
    static let opensWebSocket = CheckMarks(rawValue: 8)
    /// The client uses `https`.
    static let isSecure = CheckMarks(rawValue: 16)
    /// The client uses `http`; without either it is not known what it uses.
    static let isInsecure = CheckMarks(rawValue: 32)
    /// The method is one whose requests have bodies, which the proxy keeps.
    static let mayHaveBody = CheckMarks(rawValue: 64)
    /// The proxy asks by gRPC.
    static let isCall = CheckMarks(rawValue: 128)
    /// The head is that of the described request; until then, and when it is parsed again, its path is the endpoint's.
    static let isDescribed = CheckMarks(rawValue: 256)

    /// What a call says of itself, and not by the query of its path.
    static let ofCall: CheckMarks = [.isCall, .deniesAlike, .redirectsBrowsers]

    /// The arguments of a query, which begins with its question mark. Others are ignored: some proxies append the
    /// client's query.
    init(query: Span<UInt8>) {
        var marks: CheckMarks = []
        var start = 1
        while start < query.count {
            var end = start
            while end < query.count, query[end] != UInt8(ascii: "&") { end += 1 }
            let argument = query.extracting(start..<end)
            if CheckMarks.spells(argument, "deny=403") { marks.insert(.deniesAlike) }
            if CheckMarks.spells(argument, "browser=1") { marks.insert(.redirectsBrowsers) }
            start = end + 1
        }
        self = marks
    }

    init(rawValue: UInt16) { self.rawValue = rawValue }

    private static func spells(_ bytes: Span<UInt8>, _ text: String) -> Bool {
        guard bytes.count == text.utf8.count else { return false }
        for (index, byte) in text.utf8.enumerated() where bytes[index] != byte { return false }
        return true
    }

    /// Adds what the description says about the request.
    mutating func add(_ request: CheckedRequest, method: Method) {
        if request.opensWebSocket { insert(.opensWebSocket) }
        if let scheme = request.scheme { insert(scheme.isSecure ? .isSecure : .isInsecure) }
        if method != .get, method != .head, method != .options { insert(.mayHaveBody) }
    }
}
