/// What the fields of a response head say, collected as they are read and judged together at its end.
struct ResponseNotes {
    private let isHTTP10: Bool
    private var framing = FramingNotes()
    private var upgrades = 0
    private var upgrade = ByteRange.empty

    init(isHTTP10: Bool) { self.isHTTP10 = isHTTP10 }

    /// Takes the last field into account, one that is about the connection.
    @inline(never)
    mutating func note(_ bytes: Span<UInt8>, _ head: inout ResponseHead) -> HeadFailure? {
        let field = head.fields[head.fields.count &- 1]
        // With zeros before it a length is written anew: not everybody reads such a number the same.
        if field.known == .contentLength, field.value.count < 2 || !bytes.has(0x30, at: field.value.start) {
            head.kept.hasLength = true
        } else {
            head.kept.cut(field.line)
        }
        if field.known == .upgrade {
            upgrades &+= 1
            upgrade = field.value
        }
        return framing.note(field.known, field.value, bytes, isHTTP10: isHTTP10)
    }

    /// Where the body ends (RFC 9112 §6.3) and whether the connection goes on.
    mutating func finish(_ bytes: Span<UInt8>, _ method: Method, _ head: inout ResponseHead) -> HeadFailure? {
        head.upgrade = .empty
        head.keepsAlive = !isHTTP10
        if framing.connections > 0 {
            var options = ConnectionOptions()
            guard options.read(bytes, framing, &head.fields) else { return .badConnection }
            head.keepsAlive = !options.closes && (!isHTTP10 || options.keepsAlive)
            if options.upgrades, upgrades == 1, !isHTTP10 { head.upgrade = upgrade }
        }
        let announcesBody = framing.isChunked || framing.contentLength > 0
        if head.status < 200 || head.status == 204 {
            head.framing = .none
            // What such an answer announces may follow all the same: nothing after it can be trusted.
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
