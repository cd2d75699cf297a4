package import MartletCore

/// A check by gRPC: what a `CheckRequest` of Envoy's `envoy.service.auth.v3.Authorization/Check` says about a request.
///
/// Only what describes the request is read. ``writeHead(at:_:into:)`` makes it the head of a check over HTTP, so that both
/// are decided by the same rules.
package struct CheckCall: Sendable {
    /// The bytes before a message: whether it is compressed, and its length.
    private static let prefixBytes = 5

    private var request = HTTPRequest()
    /// The address of the client, or of the proxy before it.
    private var sourceAddress: ByteRange?
    /// Whether 400, 429 and 503 are to be 403.
    package private(set) var deniesAlike = false
    /// Whether a navigation is to be redirected to the sign-in page.
    package private(set) var redirectsBrowsers = false

    /// - Parameter body: of the call, with its one message.
    /// - Throws: for anything else.
    package init(_ body: Span<UInt8>) throws(CheckError) {
        guard body.count >= CheckCall.prefixBytes, body[0] == 0 else { throw .message }
        var length = 0
        for index in 1..<CheckCall.prefixBytes { length = length << 8 | Int(body[index]) }
        guard length == body.count &- CheckCall.prefixBytes else { throw .message }
        do throws(ProtobufError) {
            try read(body, ByteRange(start: CheckCall.prefixBytes, count: length))
        } catch {
            throw .message
        }
    }

    /// The whole message: `attributes`.
    private mutating func read(_ bytes: Span<UInt8>, _ message: ByteRange) throws(ProtobufError) {
        var fields = ProtobufFields(message)
        var attributes: ByteRange?
        while let field = try fields.next(bytes) { if field.number == 1 { try Self.set(&attributes, field) } }
        if let attributes { try readAttributes(bytes, attributes) }
    }

    /// `AttributeContext`: `source`, `request` and `context_extensions`.
    private mutating func readAttributes(_ bytes: Span<UInt8>, _ message: ByteRange) throws(ProtobufError) {
        var fields = ProtobufFields(message)
        var (source, request): (ByteRange?, ByteRange?) = (nil, nil)
        while let field = try fields.next(bytes) {
            switch field.number {
            case 1: try Self.set(&source, field)
            case 4: try Self.set(&request, field)
            case 10:
                let (name, value) = try HTTPRequest.entry(bytes, field.bytes, alternative: 0)
                if bytes.spells(name, "deny"), bytes.spells(value, "403") { deniesAlike = true }
                if bytes.spells(name, "browser"), bytes.spells(value, "1") { redirectsBrowsers = true }
            default: break
            }
        }
        // Peer.address, Address.socket_address, SocketAddress.address.
        for _ in 0..<2 { source = try Self.embedded(bytes, source, 1) }
        sourceAddress = try Self.embedded(bytes, source, 2)
        if let http = try Self.embedded(bytes, request, 2) { try self.request.read(bytes, http) }
    }

    /// A field of an embedded message; `nil` where one of them is not there.
    private static func embedded(
        _ bytes: Span<UInt8>, _ message: ByteRange?, _ number: UInt64
    ) throws(ProtobufError) -> ByteRange? {
        guard let message else { return nil }
        var fields = ProtobufFields(message)
        var found: ByteRange?
        while let field = try fields.next(bytes) { if field.number == number { try set(&found, field) } }
        return found
    }

    private static func set(_ value: inout ByteRange?, _ field: ProtobufFields.Field) throws(ProtobufError) {
        guard value == nil else { throw .repeated }
        value = try field.bytes
    }

    // MARK: The head

    /// Writes the head of a check over HTTP, whose path is that of the endpoint followed by the request's.
    /// - Throws: if a request could not have a part of it.
    package func writeHead(at endpoint: [UInt8], _ bytes: Span<UInt8>, into out: inout ByteBuffer) throws(CheckError) {
        guard let method = request.method, Method.isValid(bytes, method) else { throw .invalid(.ownMethod) }
        guard let path = request.path, CheckTarget(bytes, path) != nil else { throw .invalid(.ownTarget) }
        guard let host = request.host, HostValue.isValid(bytes, host) else { throw .invalid(.ownHost) }
        out.append(bytes, method)
        out.append(" ")
        out.append(endpoint)
        guard TargetEncoding.append(bytes.extracting(path.bounds), to: &out) else { throw .invalid(.ownTarget) }
        if let query = request.query, !query.isEmpty {
            // Envoy has it in the path.
            guard !bytes.contains(UInt8(ascii: "?"), path), CheckTarget.isQuery(bytes, query) else {
                throw .conflict(.ownTarget)
            }
            out.append("?")
            guard TargetEncoding.append(bytes.extracting(query.bounds), to: &out) else { throw .invalid(.ownTarget) }
        }
        out.append(" HTTP/1.1\r\nHost: ")
        out.append(bytes, host)
        out.append("\r\n")
        try writeFields(bytes, into: &out)
        out.append("\r\n")
    }

    private func writeFields(_ bytes: Span<UInt8>, into out: inout ByteBuffer) throws(CheckError) {
        var (hasScheme, hasClient) = (false, false)
        for (name, value) in request.fields {
            if name.isEmpty || bytes[name.start] == UInt8(ascii: ":") { continue }
            guard CheckCall.isName(bytes, name), CheckCall.isValue(bytes, value) else { throw .message }
            if CheckCall.isOfConnection(bytes, name) { continue }
            if bytes.spells(name, "authorization"), bytes.hasCommaOutsideQuotes(value) {
                throw .repeated(.authorization)
            }
            if bytes.spells(name, "x-forwarded-proto") { hasScheme = true }
            if bytes.spells(name, "x-forwarded-for") || bytes.spells(name, "forwarded") { hasClient = true }
            out.append(bytes, name)
            out.append(": ")
            out.append(bytes, value)
            out.append("\r\n")
        }
        if !hasScheme, let scheme = request.scheme, !scheme.isEmpty {
            guard CheckScheme(bytes, scheme) != nil else { throw .invalid(.forwardedProto) }
            out.append("x-forwarded-proto: ")
            out.append(bytes, scheme)
            out.append("\r\n")
        }
        if !hasClient, let sourceAddress, CheckCall.isValue(bytes, sourceAddress), !sourceAddress.isEmpty {
            out.append("x-forwarded-for: ")
            out.append(bytes, sourceAddress)
            out.append("\r\n")
        }
    }

    private static func isName(_ bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
        for index in range.bounds where !Token.isMember(bytes[index]) { return false }
        return true
    }

    /// Whether a line could have the value: no byte ends it.
    private static func isValue(_ bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
        for index in range.bounds where bytes[index] < 0x20 && bytes[index] != 0x09 || bytes[index] == 0x7F {
            return false
        }
        return true
    }

    /// Fields that are about the connection or the body, which stay with the proxy, and the host, which stands elsewhere.
    private static func isOfConnection(_ bytes: Span<UInt8>, _ name: ByteRange) -> Bool {
        let names: [StaticString] = [
            "host", "connection", "content-length", "transfer-encoding", "expect", "keep-alive", "te", "trailer",
            "upgrade",
            "proxy-connection", "http2-settings",
        ]
        for other in names where bytes.spells(name, other) { return true }
        return false
    }
}

/// `AttributeContext.HttpRequest`.
private struct HTTPRequest {
    private(set) var method: ByteRange?
    private(set) var path: ByteRange?
    private(set) var host: ByteRange?
    private(set) var scheme: ByteRange?
    private(set) var query: ByteRange?
    /// In the order of the message.
    private(set) var fields: [(name: ByteRange, value: ByteRange)] = []

    mutating func read(_ bytes: Span<UInt8>, _ message: ByteRange) throws(ProtobufError) {
        var all = ProtobufFields(message)
        var raw: ByteRange?
        while let field = try all.next(bytes) {
            switch field.number {
            case 2: try set(\.method, field)
            case 3: fields.append(try HTTPRequest.entry(bytes, field.bytes, alternative: 0))
            case 4: try set(\.path, field)
            case 5: try set(\.host, field)
            case 6: try set(\.scheme, field)
            case 7: try set(\.query, field)
            case 13:
                guard raw == nil else { throw .repeated }
                raw = try field.bytes
            default: break
            }
        }
        guard let raw else { return }
        // The fields as they came in, which Envoy can send instead of the map.
        guard fields.isEmpty else { throw .repeated }
        var list = ProtobufFields(raw)
        while let field = try list.next(bytes) {
            if field.number == 1 { fields.append(try HTTPRequest.entry(bytes, field.bytes, alternative: 3)) }
        }
    }

    private mutating func set(
        _ member: WritableKeyPath<HTTPRequest, ByteRange?>, _ field: ProtobufFields.Field
    ) throws(ProtobufError) {
        guard self[keyPath: member] == nil else { throw .repeated }
        self[keyPath: member] = try field.bytes
    }

    /// Name and value of an entry of a map, or of a `HeaderValue`, whose value may be in the field `alternative`.
    static func entry(
        _ bytes: Span<UInt8>, _ message: ByteRange, alternative: UInt64
    ) throws(ProtobufError) -> (name: ByteRange, value: ByteRange) {
        var fields = ProtobufFields(message)
        var (name, value): (ByteRange?, ByteRange?) = (nil, nil)
        while let field = try fields.next(bytes) {
            if field.number == 1 {
                guard name == nil else { throw .repeated }
                name = try field.bytes
            } else if field.number == 2 || field.number == alternative {
                let range = try field.bytes
                guard value?.isEmpty ?? true else { throw .repeated }
                value = range
            }
        }
        return (name ?? .empty, value ?? .empty)
    }
}

extension CheckTarget {
    /// Whether a target could have these bytes behind its question mark.
    static func isQuery(_ bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
        for index in range.bounds
        where bytes[index] <= 0x20 || bytes[index] == 0x7F || bytes[index] == UInt8(ascii: "#") {
            return false
        }
        return true
    }
}

extension Span<UInt8> {
    /// Whether a range holds a text in lower case, in any case.
    fileprivate func spells(_ range: ByteRange, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for offset in 0..<range.count where ASCII.lowered(self[range.start &+ offset]) != text.byte(at: offset) {
            return false
        }
        return true
    }

    fileprivate func contains(_ byte: UInt8, _ range: ByteRange) -> Bool {
        for index in range.bounds where self[index] == byte { return true }
        return false
    }

    /// Whether a value may be two, which the proxy has joined.
    fileprivate func hasCommaOutsideQuotes(_ range: ByteRange) -> Bool {
        var isQuoted = false
        var index = range.start
        while index < range.end {
            switch self[index] {
            case UInt8(ascii: "\\") where isQuoted: index &+= 1
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: ",") where !isQuoted: return true
            default: break
            }
            index &+= 1
        }
        return false
    }
}

extension ByteBuffer {
    fileprivate mutating func append(_ bytes: Span<UInt8>, _ range: ByteRange) {
        unsafe bytes.extracting(range.bounds).withUnsafeBufferPointer { unsafe append($0) }
    }
}
