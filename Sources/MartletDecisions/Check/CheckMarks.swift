package import MartletHTTP

/// What an exchange is, if a proxy asks by it about a client's request; empty for every other exchange.
@usableFromInline package struct CheckMarks: OptionSet, Sendable {
    @usableFromInline package let rawValue: UInt16

    @inlinable package init(rawValue: UInt16) { self.rawValue = rawValue }

    @inlinable package static var isCheck: CheckMarks { CheckMarks(rawValue: 1) }
    /// 400, 429 and 503 are 403.
    @inlinable package static var deniesAlike: CheckMarks { CheckMarks(rawValue: 2) }
    /// A navigation without a credential is redirected to the sign-in page.
    @inlinable package static var redirectsBrowsers: CheckMarks { CheckMarks(rawValue: 4) }
    /// The described request opens a WebSocket.
    @inlinable package static var opensWebSocket: CheckMarks { CheckMarks(rawValue: 8) }
    /// The client uses `https`.
    @inlinable package static var isSecure: CheckMarks { CheckMarks(rawValue: 16) }
    /// The client uses `http`; without either it is not known what it uses.
    @inlinable package static var isInsecure: CheckMarks { CheckMarks(rawValue: 32) }
    /// The method is one whose requests have bodies, which the proxy keeps.
    static let mayHaveBody = CheckMarks(rawValue: 64)
    /// The proxy asks by gRPC.
    @inlinable package static var isCall: CheckMarks { CheckMarks(rawValue: 128) }
    /// The head is that of the described request; until then, and when it is parsed again, its path is the endpoint's.
    @inlinable package static var isDescribed: CheckMarks { CheckMarks(rawValue: 256) }

    /// What a call says of itself, and not by the query of its path.
    @inlinable package static var ofCall: CheckMarks { [.isCall, .deniesAlike, .redirectsBrowsers] }

    /// The arguments of a query, which begins with its question mark. Others are ignored: some proxies append the
    /// client's query.
    package init(query: Span<UInt8>) {
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

    private static func spells(_ bytes: Span<UInt8>, _ text: String) -> Bool {
        guard bytes.count == text.utf8.count else { return false }
        for (index, byte) in text.utf8.enumerated() where bytes[index] != byte { return false }
        return true
    }

    /// Adds what the description says about the request.
    package mutating func add(_ request: CheckedRequest, method: Method) {
        if request.opensWebSocket { insert(.opensWebSocket) }
        if let scheme = request.scheme { insert(scheme.isSecure ? .isSecure : .isInsecure) }
        if method != .get, method != .head, method != .options { insert(.mayHaveBody) }
    }
}
