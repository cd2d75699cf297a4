/// The checks of a response head that span several fields, collected per field and completed at the end.
struct ResponseHeadChecks {
    private let isHTTP10: Bool
    private var framing = FramingChecks()
    private var upgrades = 0
    private var upgrade = ByteRange.empty
    /// The head of a 1xx announces a body in a form that is rejected elsewhere.
    private var announcesUnreadableBody = false

    init(isHTTP10: Bool) { self.isHTTP10 = isHTTP10 }

    /// Checks the last field of the head, for which `isCheckedInResponses` is true.
    @inline(never)
    mutating func check(_ bytes: Span<UInt8>, _ head: inout ResponseHead) -> HeadError? {
        let field = head.fields[head.fields.count &- 1]
        // A length with leading zeros is rewritten: parsers disagree about it.
        if field.known == .contentLength, field.value.count < 2 || !bytes.has(0x30, at: field.value.start) {
            head.forwardable.hasLength = true
        } else {
            head.forwardable.omit(field.line)
        }
        if field.known == .upgrade {
            upgrades &+= 1
            upgrade = field.value
        }
        guard let failure = framing.check(field.known, field.value, bytes, isHTTP10: isHTTP10) else { return nil }
        // RFC 9112 §6.3: a 1xx ends with its head, whatever its fields say of a body. They are not forwarded.
        guard head.status < 200 else { return failure }
        announcesUnreadableBody = true
        return nil
    }

    /// Determines where the body ends (RFC 9112 §6.3) and whether the connection persists.
    mutating func finish(_ bytes: Span<UInt8>, _ method: Method, _ head: inout ResponseHead) -> HeadError? {
        head.upgrade = .empty
        head.keepsAlive = !isHTTP10
        if framing.connections > 0 {
            var options = ConnectionOptions()
            guard options.read(bytes, framing, &head.fields) else { return .badConnection }
            head.keepsAlive = !options.closes && (!isHTTP10 || options.keepsAlive)
            if options.upgrades, upgrades == 1, !isHTTP10 { head.upgrade = upgrade }
        }
        let announcesBody = framing.isChunked || framing.contentLength > 0 || announcesUnreadableBody
        if head.status < 200 || head.status == 204 {
            head.framing = .none
            // The announced body may follow anyway, so the connection cannot be reused.
            if announcesBody { head.keepsAlive = false }
        } else if method == .head || head.status == 304 || (method == .connect && head.status < 300) {
            head.framing = .none
        } else if framing.isChunked {
            head.framing = .chunked
        } else if framing.contentLength >= 0 {
            head.framing = .length(framing.contentLength)
        } else {
            head.framing = .untilClose
            head.keepsAlive = false
        }
        return nil
    }
}
