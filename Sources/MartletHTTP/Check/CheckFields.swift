/// The values of the fields that describe the request of a check.
struct CheckFields {
    private(set) var forwardedMethod: ByteRange?
    private(set) var forwardedProto: ByteRange?
    private(set) var forwardedHost: ByteRange?
    private(set) var forwardedURI: ByteRange?
    private(set) var originalURI: ByteRange?
    private(set) var originalURL: ByteRange?
    private(set) var originalMethod: ByteRange?

    /// - Throws: for a field that the head has twice.
    init(_ fields: borrowing FieldList, _ bytes: Span<UInt8>) throws(CheckError) {
        var index = 0
        while index < fields.count {
            let field = fields[index]
            index &+= 1
            switch field.known {
            case .xForwardedMethod: try Self.set(&forwardedMethod, field.value, .forwardedMethod)
            case .xForwardedProto: try Self.set(&forwardedProto, field.value, .forwardedProto)
            case .xForwardedHost: try Self.set(&forwardedHost, field.value, .forwardedHost)
            case .xForwardedURI: try Self.set(&forwardedURI, field.value, .forwardedURI)
            case .originalURI: try Self.set(&originalURI, field.value, .originalURI)
            case .originalMethod: try Self.set(&originalMethod, field.value, .originalMethod)
            case .other where field.isNamed("x-original-url", in: bytes):
                try Self.set(&originalURL, field.value, .originalURL)
            default: break
            }
        }
    }

    private static func set(_ value: inout ByteRange?, _ found: ByteRange, _ field: CheckField) throws(CheckError) {
        guard value == nil else { throw .repeated(field) }
        value = found
    }
}

/// The target of a described request.
struct CheckTarget: Equatable {
    /// Begins with a slash.
    let path: ByteRange
    /// From the question mark on, or empty.
    let query: ByteRange

    private static let maximumBytes = 8192

    /// Path and query as in a request line, by the same rules.
    /// - Returns: `nil` for what no request line could have.
    init?(_ bytes: Span<UInt8>, _ range: ByteRange) {
        guard !range.isEmpty, range.count <= CheckTarget.maximumBytes, bytes[range.start] == UInt8(ascii: "/"),
            let question = CheckTarget.question(bytes, range)
        else { return nil }
        self.init(
            path: ByteRange(from: range.start, to: question),
            query: question == range.end ? .empty : ByteRange(from: question, to: range.end))
    }

    private init(path: ByteRange, query: ByteRange) { (self.path, self.query) = (path, query) }

    /// What follows the authority of a URL; an empty path is the `slash` before that.
    init?(_ bytes: Span<UInt8>, behind authority: ByteRange, slash: Int, to end: Int) {
        let rest = ByteRange(from: authority.end, to: end)
        guard rest.isEmpty || bytes[rest.start] == UInt8(ascii: "?") else {
            self.init(bytes, rest)
            return
        }
        guard rest.count <= CheckTarget.maximumBytes, CheckTarget.question(bytes, rest) != nil else { return nil }
        self.init(path: ByteRange(start: slash, count: 1), query: rest.isEmpty ? .empty : rest)
    }

    /// The first question mark, or the end; `nil` if there is a byte that no target has.
    ///
    /// Characters beyond ASCII are taken as clients send them: the path gets its normal form later.
    private static func question(_ bytes: Span<UInt8>, _ range: ByteRange) -> Int? {
        var question = range.end
        var utf8 = UTF8Run()
        for index in range.bounds {
            let byte = bytes[index]
            if byte >= 0x80 {
                guard utf8.consume(byte) else { return nil }
                continue
            }
            guard utf8.isComplete, byte > 0x20, byte != 0x7F, byte != UInt8(ascii: "#") else { return nil }
            if byte == UInt8(ascii: "?"), question == range.end { question = index }
        }
        return utf8.isComplete ? question : nil
    }

    /// Whether two targets are the same, byte by byte.
    func equals(_ other: CheckTarget, in bytes: Span<UInt8>) -> Bool {
        bytes.same(path, other.path) && bytes.same(query, other.query)
    }
}

/// Scheme, host and target of `X-Original-URL`.
struct CheckURL {
    let scheme: CheckScheme
    let authority: ByteRange
    let target: CheckTarget

    /// - Returns: `nil` for anything but an absolute URL of a scheme that HTTP has, without user information.
    init?(_ bytes: Span<UInt8>, _ range: ByteRange) {
        var colon = range.start
        while colon < range.end, bytes[colon] != UInt8(ascii: ":") { colon &+= 1 }
        guard let scheme = CheckScheme(bytes, ByteRange(from: range.start, to: colon)), colon &+ 2 < range.end,
            bytes[colon &+ 1] == UInt8(ascii: "/"), bytes[colon &+ 2] == UInt8(ascii: "/")
        else { return nil }
        var end = colon &+ 3
        while end < range.end, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") { end &+= 1 }
        authority = ByteRange(from: colon &+ 3, to: end)
        guard HostValue.isValid(bytes.extracting(first: range.end), authority),
            let target = CheckTarget(bytes, behind: authority, slash: colon &+ 2, to: range.end)
        else { return nil }
        (self.scheme, self.target) = (scheme, target)
    }
}

/// The scheme of a described request.
package enum CheckScheme: UInt8, Sendable {
    case http, https, ws, wss

    init?(_ bytes: Span<UInt8>, _ range: ByteRange) {
        func spells(_ text: StaticString) -> Bool {
            guard range.count == text.utf8CodeUnitCount else { return false }
            for offset in 0..<range.count
            where ASCII.lowered(bytes[range.start &+ offset]) != text.byte(at: offset) { return false }
            return true
        }
        if spells("https") {
            self = .https
        } else if spells("http") {
            self = .http
        } else if spells("wss") {
            self = .wss
        } else if spells("ws") {
            self = .ws
        } else {
            return nil
        }
    }

    /// Whether the client uses TLS.
    package var isSecure: Bool { self == .https || self == .wss }
    /// Whether the proxy says that the request opens a WebSocket.
    package var isWebSocket: Bool { self == .ws || self == .wss }
}

extension Span<UInt8> {
    /// Whether two ranges hold the same bytes.
    func same(_ left: ByteRange, _ right: ByteRange) -> Bool {
        guard left.count == right.count else { return false }
        for offset in 0..<left.count where self[left.start &+ offset] != self[right.start &+ offset] { return false }
        return true
    }
}
