/// The request that a check is about: what a proxy says of it, as ranges of the bytes of the check's own head.
///
/// There are three schemes, and the first complete one counts: `X-Forwarded-*`, `X-Original-*`, and the check's own target
/// behind the path of the endpoint. What the others say, complete or not, has to be the same: a client that gets a field
/// of its own past the proxy is rejected, and not believed.
package struct CheckedRequest: Sendable {
    package let method: ByteRange
    /// Host and perhaps a port.
    package let authority: ByteRange
    /// As the proxy says; `nil` where it says nothing.
    package let scheme: CheckScheme?
    /// Whether the client asks for a WebSocket.
    package let opensWebSocket: Bool
    let target: CheckTarget

    /// - Parameters:
    ///   - head: of the check, parsed from `bytes`.
    ///   - endpoint: the path of the endpoint.
    /// - Throws: if the request is unknown or ambiguous.
    package init(
        describedBy head: borrowing RequestHead, _ bytes: Span<UInt8>, at endpoint: Span<UInt8>
    ) throws(CheckError) {
        let fields = try CheckFields(head.fields, bytes)
        let parts = try CheckParts(fields, head, bytes, endpoint)
        let chosen = try parts.choose(head)
        try parts.compare(chosen, head, bytes)
        (method, authority, target) = (chosen.method, chosen.authority, chosen.target)
        scheme = parts.proto ?? parts.url?.scheme
        opensWebSocket =
            parts.proto?.isWebSocket == true || parts.url?.scheme.isWebSocket == true
            || head.fields.has(.secWebSocketKey) || head.fields.has(.secWebSocketVersion)
    }
}

/// A complete description.
struct CheckDescription {
    let method: ByteRange
    let authority: ByteRange
    let target: CheckTarget
}

/// What the head of a check says about its request, each part valid by itself.
struct CheckParts {
    private let fields: CheckFields
    let proto: CheckScheme?
    private let forwarded: CheckTarget?
    private let original: CheckTarget?
    let url: CheckURL?
    /// The rest of the check's own target.
    private let own: CheckTarget?

    /// - Throws: for a part that no request could have.
    init(
        _ fields: CheckFields, _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ endpoint: Span<UInt8>
    ) throws(CheckError) {
        self.fields = fields
        proto = try Self.parse(fields.forwardedProto, .forwardedProto) { CheckScheme(bytes, $0) }
        forwarded = try Self.parse(fields.forwardedURI, .forwardedURI) { CheckTarget(bytes, $0) }
        original = try Self.parse(fields.originalURI, .originalURI) { CheckTarget(bytes, $0) }
        url = try Self.parse(fields.originalURL, .originalURL) { CheckURL(bytes, $0) }
        own = try Self.own(head, bytes, endpoint)
        for (value, field) in [
            (fields.forwardedMethod, CheckField.forwardedMethod), (fields.originalMethod, .originalMethod),
        ] {
            _ = try Self.parse(value, field) { Method.isValid(bytes, $0) ? true : nil }
        }
        _ = try Self.parse(fields.forwardedHost, .forwardedHost) { HostValue.isValid(bytes, $0) ? true : nil }
    }

    private static func parse<Value>(
        _ range: ByteRange?, _ field: CheckField, _ parse: (ByteRange) -> Value?
    ) throws(CheckError) -> Value? {
        guard let range else { return nil }
        guard let value = parse(range) else { throw .invalid(field) }
        return value
    }

    /// The target behind the path of the endpoint; `nil` where there is nothing behind it.
    private static func own(
        _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ endpoint: Span<UInt8>
    ) throws(CheckError) -> CheckTarget? {
        let path = head.path
        // Another spelling of the endpoint's path has another length.
        guard path.count >= endpoint.count else { throw .invalid(.ownTarget) }
        for index in 0..<endpoint.count where bytes[path.start &+ index] != endpoint[index] {
            throw .invalid(.ownTarget)
        }
        guard path.count > endpoint.count else { return nil }
        let end = head.query.isEmpty ? path.end : head.query.end
        guard let target = CheckTarget(bytes, ByteRange(from: path.start &+ endpoint.count, to: end)) else {
            throw .invalid(.ownTarget)
        }
        return target
    }

    /// The first complete description.
    func choose(_ head: borrowing RequestHead) throws(CheckError) -> CheckDescription {
        if let forwarded, let method = fields.forwardedMethod, let host = fields.forwardedHost, proto != nil {
            return CheckDescription(method: method, authority: host, target: forwarded)
        }
        if let target = original ?? url?.target {
            return CheckDescription(
                method: try originalMethod(head), authority: url?.authority ?? fields.forwardedHost ?? head.authority,
                target: target)
        }
        if let own { return CheckDescription(method: head.methodText, authority: head.authority, target: own) }
        if fields.originalMethod != nil { throw .missing(.originalURI) }
        guard forwarded != nil || fields.forwardedMethod != nil else { throw .undescribed }
        if forwarded == nil { throw .missing(.forwardedURI) }
        if fields.forwardedMethod == nil { throw .missing(.forwardedMethod) }
        throw .missing(proto == nil ? .forwardedProto : .forwardedHost)
    }

    /// The method of `X-Original-Method`, by default GET: a check with another method of its own has to name it.
    private func originalMethod(_ head: borrowing RequestHead) throws(CheckError) -> ByteRange {
        if let method = fields.originalMethod { return method }
        guard head.method == .get else { throw .missing(.originalMethod) }
        return head.methodText
    }

    /// Compares a description with everything that the head says.
    func compare(_ chosen: CheckDescription, _ head: borrowing RequestHead, _ bytes: Span<UInt8>) throws(CheckError) {
        let targets = [
            (forwarded, CheckField.forwardedURI), (original, .originalURI), (url?.target, .originalURL),
            (own, .ownTarget),
        ]
        for case (let target?, let field) in targets where !target.equals(chosen.target, in: bytes) {
            throw .conflict(field)
        }
        let methods = [
            (fields.forwardedMethod, CheckField.forwardedMethod), (fields.originalMethod, .originalMethod),
            (own == nil ? nil : head.methodText, .ownMethod),
        ]
        for case (let method?, let field) in methods where !bytes.same(method, chosen.method) {
            throw .conflict(field)
        }
        let hosts = [
            (fields.forwardedHost, CheckField.forwardedHost), (url?.authority, .originalURL),
            (own == nil ? nil : head.authority, .ownHost),
        ]
        for case (let host?, let field) in hosts
        where !HostValue.areEqual(bytes, host, chosen.authority) { throw .conflict(field) }
    }
}

extension Method {
    /// Whether a request line could have this method (RFC 9110 §9.1), and no upstream reads another one from it.
    static func isValid(_ bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
        guard !range.isEmpty, range.count <= RequestHead.maximumMethodBytes else { return false }
        for index in range.bounds where !Token.isMember(bytes[index]) { return false }
        return named(bytes, range) != .other || !MethodRegistry.hasInOtherCase(bytes.extracting(range.bounds))
    }
}

extension HostValue {
    /// Whether two valid values name the same host: in any case, with or without a dot at the end, and with the same
    /// port where both have one.
    static func areEqual(_ bytes: Span<UInt8>, _ left: ByteRange, _ right: ByteRange) -> Bool {
        let (a, b) = (parts(bytes, left), parts(bytes, right))
        guard bytes.sameIgnoringCase(a.name, b.name) else { return false }
        return a.port.isEmpty || b.port.isEmpty || bytes.same(a.port, b.port)
    }

    private static func parts(_ bytes: Span<UInt8>, _ range: ByteRange) -> (name: ByteRange, port: ByteRange) {
        var colon = range.end
        while colon > range.start, bytes[colon &- 1] != UInt8(ascii: ":"), bytes[colon &- 1] != UInt8(ascii: "]") {
            colon &-= 1
        }
        let hasPort = colon > range.start && bytes[colon &- 1] == UInt8(ascii: ":")
        var end = hasPort ? colon &- 1 : range.end
        if end > range.start, bytes[end &- 1] == UInt8(ascii: ".") { end &-= 1 }
        return (
            ByteRange(from: range.start, to: end), hasPort ? ByteRange(from: colon, to: range.end) : .empty
        )
    }
}

extension RequestHead {
    /// Makes the head of a check that of the request that it describes, with the fields of the check.
    package mutating func describe(_ request: CheckedRequest, in bytes: Span<UInt8>) {
        method = Method.named(bytes, request.method)
        methodText = request.method
        path = request.target.path
        query = request.target.query
        target = query.isEmpty ? path : ByteRange(from: path.start, to: query.end)
        authority = request.authority
        isAbsoluteForm = false
        isAsteriskForm = false
        isAuthorityForm = false
        framing = .none
        upgrade = .empty
        expectsContinue = false
        announcesTrailers = false
    }
}
