/// What the fields of a request head say, collected as they are read and judged together at its end.
struct RequestNotes {
    private let isHTTP10: Bool
    private var framing = FramingNotes()
    private var hosts = 0
    private var host = ByteRange.empty
    private var upgrades = 0
    private var upgrade = ByteRange.empty
    private var expectations = 0

    init(isHTTP10: Bool) { self.isHTTP10 = isHTTP10 }

    /// Takes the last field into account, whatever it is.
    /// - Returns: why the request must be refused, if so.
    @inline(never)
    mutating func note(_ bytes: Span<UInt8>, _ head: inout RequestHead) -> HeadFailure? {
        let field = head.fields[head.fields.count &- 1]
        switch field.known {
        case .host:
            hosts &+= 1
            guard hosts == 1 else { return .hostRepeated }
            guard HostValue.isValid(bytes, field.value) else { return .badHost }
            host = field.value
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
            // An upstream that folds names would read a second framing out of these.
            if field.alias == .contentLength || field.alias == .transferEncoding { return .badFieldName }
        default: return framing.note(field.known, field.value, bytes, isHTTP10: isHTTP10)
        }
        return nil
    }

    /// Judges the head as a whole and fills in what only the whole tells.
    mutating func finish(_ bytes: Span<UInt8>, _ head: inout RequestHead) -> HeadFailure? {
        guard hosts == 1 else { return .hostMissing }
        if head.isAbsoluteForm, !bytes.sameIgnoringCase(head.authority, host) { return .hostMismatch }
        head.authority = host
        head.keepsAlive = !isHTTP10
        if framing.connections > 0 {
            var options = ConnectionOptions()
            guard options.read(bytes, framing, &head.fields) else { return .badConnection }
            head.keepsAlive = !options.closes && (!isHTTP10 || options.keepsAlive)
            // RFC 9110 §7.8: not from HTTP/1.0; two fields are no offer that we could answer.
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
