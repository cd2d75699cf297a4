/// The checks of a request head that span several fields, collected per field and completed at the end.
struct RequestHeadChecks {
    private let isHTTP10: Bool
    private var framing = FramingChecks()
    private var hosts = 0
    private var host = ByteRange.empty
    private var upgrades = 0
    private var upgrade = ByteRange.empty
    private var expectations = 0

    init(isHTTP10: Bool) { self.isHTTP10 = isHTTP10 }

    /// Checks the last field of the head.
    /// - Returns: why the request is rejected, or nil.
    @inline(never)
    mutating func check(_ bytes: Span<UInt8>, _ head: inout RequestHead) -> HeadError? {
        let field = head.fields[head.fields.count &- 1]
        switch field.known {
        case .host:
            hosts &+= 1
            guard hosts == 1 else { return .hostRepeated }
            guard HostValue.isValid(bytes, field.value) else { return .badHost }
            host = HostValue.withoutEmptyPort(bytes, field.value)
            if host.end != field.value.end { head.fields.shortenLastValue(to: host.end) }
        case .authorization:
            guard head.authorization < 0 else { return .authorizationRepeated }
            head.authorization = head.fields.count &- 1
        case .upgrade:
            upgrades &+= 1
            upgrade = field.value
        case .expect:
            expectations &+= 1
            guard expectations == 1, bytes.spells("100-continue", field.value) else { return .badExpectation }
        case .trailer: head.announcesTrailers = true
        case .other:
            // An upstream that treats `_` as `-` would see a second framing field.
            if field.alias == .contentLength || field.alias == .transferEncoding { return .badFieldName }
        default: return framing.check(field.known, field.value, bytes, isHTTP10: isHTTP10)
        }
        return nil
    }

    /// Whether `Host` is that of an absolute target.
    @inline(never)
    private func isSameHost(_ bytes: Span<UInt8>, _ head: borrowing RequestHead) -> Bool {
        let isSecure = ASCII.lowered(bytes[head.target.start &+ 4]) == UInt8(ascii: "s")
        return HostValue.areSame(bytes, head.authority, host, isSecure: isSecure)
    }

    /// Checks the head as a whole and fills in what depends on several fields.
    mutating func finish(_ bytes: Span<UInt8>, _ head: inout RequestHead) -> HeadError? {
        if hosts == 1 {
            guard !head.isAbsoluteForm || isSameHost(bytes, head) else { return .hostMismatch }
            head.authority = host
        } else {
            // RFC 9112 §3.2 demands it of HTTP/1.1 alone; one in the target counts.
            guard isHTTP10 else { return .hostMissing }
            head.authority = HostValue.withoutEmptyPort(bytes, head.authority)
        }
        head.keepsAlive = !isHTTP10
        if framing.connections > 0 {
            var options = ConnectionOptions()
            guard options.read(bytes, framing, &head.fields) else { return .badConnection }
            head.keepsAlive = !options.closes && (!isHTTP10 || options.keepsAlive)
            // RFC 9110 §7.8: ignored in HTTP/1.0; two fields are ambiguous.
            if options.upgrades, upgrades == 1, !isHTTP10 { head.upgrade = upgrade }
        }
        if framing.isChunked {
            head.framing = .chunked
        } else if framing.contentLength >= 0 {
            head.framing = .length(framing.contentLength)
        }
        head.expectsContinue = expectations == 1 && !isHTTP10 && (framing.isChunked || framing.contentLength > 0)
        return nil
    }
}
