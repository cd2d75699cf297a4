import MartletCore
import MartletHTTP

/// Parses the input as a request head, whole and in two pieces: both come to the same, and every range lies in the
/// bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 2 else { return 0 }
    let cut = (Int(data[0]) << 8 | Int(data[1])) % (size - 1)
    let bytes = Array(UnsafeBufferPointer(start: data + 2, count: size - 2))
    var parser = RequestParser(maximumHeadBytes: 4096, maximumTargetBytes: 512)
    var head = RequestHead(maximumFields: 16)
    let outcome = parser.parse(bytes.span, into: &head)
    parser.reset()
    var again = RequestHead(maximumFields: 16)
    var other = parser.parse(bytes.span.extracting(first: min(cut, bytes.count)), into: &again)
    if other == .needMore { other = parser.parse(bytes.span, into: &again) }
    precondition(other == outcome)
    guard case .complete(let consumed) = outcome else { return 0 }
    precondition(consumed <= bytes.count && head.fields.count == again.fields.count)
    precondition(head.path == again.path && head.framing == again.framing && head.keepsAlive == again.keepsAlive)
    let reserved = FieldNameSet(["X-User-Id", "cookie"], reservesAuthPrefix: true)
    var end = head.target.end
    for index in 0..<head.fields.count {
        let field = head.fields[index]
        precondition(field.line.start >= end && field.line.end <= consumed && field.value.end + 2 <= field.line.end)
        let name = String(decoding: bytes[field.name.bounds], as: UTF8.self)
        precondition(reserved.contains(field, in: bytes.span) == reserved.contains(name))
        precondition(!bytes[field.value.bounds].contains { $0 == 10 || $0 == 13 || $0 == 0 })
        end = field.line.end
        // The short ways of reading a line come to what the whole grammar says.
        var offset = field.line.start
        let plain = TrailerLines.next(bytes.span, from: &offset)
        precondition(offset == end && plain?.name == field.name && plain?.value.start == field.value.start)
        // An empty port is cut off.
        let isCut = field.known == .host && bytes[field.value.end] == UInt8(ascii: ":")
        precondition(plain?.value.end == field.value.end + (isCut ? 1 : 0))
        precondition(plain?.known == field.known && plain?.alias == field.alias)
        precondition(plain?.hasObsText == field.hasObsText && head.fields.has(field.known))
    }
    if head.authorization >= 0 {
        let value = head.fields[head.authorization].value
        if case .bearer(let token) = AuthorizationValue(bytes.span, value) {
            precondition(bearerCandidate(bytes.span, of: value) == token)
        }
    }
    return 0
}
