import MartletCore
import MartletHTTP

/// Parses the input as a response head, whole and in two pieces: both come to the same, and every range lies in the
/// bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 3 else { return 0 }
    let cut = (Int(data[0]) << 8 | Int(data[1])) % (size - 2)
    let method = Method(rawValue: data[2] % 10) ?? .get
    let bytes = Array(UnsafeBufferPointer(start: data + 3, count: size - 3))
    var parser = ResponseParser(maximumHeadBytes: 4096)
    var head = ResponseHead(maximumFields: 16)
    let outcome = parser.parse(bytes.span, requestMethod: method, into: &head)
    parser.reset()
    // Into memory that holds another head, the same but for one byte.
    var again = ResponseHead(maximumFields: 16)
    var similar = bytes
    similar[cut % bytes.count] ^= 1 << (data[2] >> 5)
    _ = parser.parse(similar.span, requestMethod: method, into: &again)
    parser.reset()
    var other = parser.parse(bytes.span.extracting(first: min(cut, bytes.count)), requestMethod: method, into: &again)
    if other == .needMore { other = parser.parse(bytes.span, requestMethod: method, into: &again) }
    precondition(other == outcome)
    if case .failure(let failure) = outcome { precondition(failure.rawValue >= 64) }
    guard case .complete(let consumed) = outcome else { return 0 }
    precondition(consumed <= bytes.count && head.fields.count == again.fields.count)
    precondition(head.framing == again.framing && head.keepsAlive == again.keepsAlive && head.status == again.status)
    precondition((100...599).contains(head.status) && head.reason.end < consumed)
    for index in 0..<head.fields.count {
        let field = head.fields[index]
        precondition(field.line.end <= consumed && field.value.end + 2 <= field.line.end)
        // The short ways of reading a line come to what the whole grammar says.
        var offset = field.line.start
        let plain = TrailerLines.next(bytes.span, from: &offset)
        precondition(offset == field.line.end && plain?.name == field.name && plain?.value == field.value)
        precondition(plain?.known == field.known && plain?.alias == field.alias)
        precondition(plain?.hasObsText == field.hasObsText && head.fields.has(field.known))
        precondition(again.fields[index].line == field.line && again.fields[index].known == field.known)
        precondition(again.fields[index].isConnectionOption == field.isConnectionOption)
    }
    precondition(
        head.forwardable.count == again.forwardable.count
            && head.forwardable.hasStatusLine == again.forwardable.hasStatusLine)
    if head.forwardable.count >= 0 { precondition(keptLines(again, bytes) == passing(head, bytes)) }
    if head.forwardable.count >= 0 { precondition(keptLines(head, bytes) == passing(head, bytes)) }
    return 0
}

/// What the kept runs say that a client gets.
private func keptLines(_ head: borrowing ResponseHead, _ bytes: [UInt8]) -> [UInt8] {
    var lines: [UInt8] = []
    for index in 0..<head.forwardable.count { lines += bytes[head.forwardable[index].bounds] }
    return lines
}

/// The same, line by line.
private func passing(_ head: borrowing ResponseHead, _ bytes: [UInt8]) -> [UInt8] {
    var lines: [UInt8] = []
    if head.forwardable.hasStatusLine {
        lines += "HTTP/1.1 \(head.status) ".utf8 + bytes[head.reason.bounds] + "\r\n".utf8
    }
    for index in 0..<head.fields.count {
        let field = head.fields[index]
        switch field.known {
        case .connection, .keepAlive, .proxyConnection, .transferEncoding, .te, .upgrade, .xRequestID:
            continue
        case .contentLength where field.value.count > 1 && bytes[field.value.start] == 0x30: continue
        default: if !field.isConnectionOption { lines += bytes[field.line.bounds] }
        }
    }
    return lines
}
