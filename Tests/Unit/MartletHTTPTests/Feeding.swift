import MartletCore
import MartletHTTP

/// The result of parsing a message, as a line of text for the tables.
func describe(_ outcome: HeadOutcome, _ head: borrowing RequestHead, _ bytes: [UInt8]) -> String {
    switch outcome {
    case .needMore: return "incomplete"
    case .failure(let failure): return failure.code.rawValue
    case .complete(let consumed):
        var text = "\(slice(bytes, head.methodText)) path=\(slice(bytes, head.path))"
        if !head.query.isEmpty { text += " query=\(slice(bytes, head.query))" }
        text += " host=\(slice(bytes, head.authority)) \(head.framing)"
        if head.isHTTP10 { text += " 1.0" }
        if head.isAbsoluteForm { text += " absolute" }
        if head.isAsteriskForm { text += " asterisk" }
        if head.isAuthorityForm { text += " authority" }
        if !head.keepsAlive { text += " close" }
        if head.expectsContinue { text += " continue" }
        if !head.upgrade.isEmpty { text += " upgrade=\(slice(bytes, head.upgrade))" }
        if head.authorization >= 0 { text += " authorization=\(slice(bytes, head.fields[head.authorization].value))" }
        if head.announcesTrailers { text += " trailers" }
        return text + (consumed == bytes.count ? "" : " rest=\(bytes.count - consumed)")
    }
}

func describe(_ outcome: HeadOutcome, _ head: borrowing ResponseHead, _ bytes: [UInt8]) -> String {
    switch outcome {
    case .needMore: return "incomplete"
    case .failure(let failure): return failure.code.rawValue
    case .complete(let consumed):
        var text = "\(head.status) '\(slice(bytes, head.reason))' \(head.framing)"
        if head.isHTTP10 { text += " 1.0" }
        if head.isInterim { text += " interim" }
        if !head.keepsAlive { text += " close" }
        if !head.upgrade.isEmpty { text += " upgrade=\(slice(bytes, head.upgrade))" }
        return text + (consumed == bytes.count ? "" : " rest=\(bytes.count - consumed)")
    }
}

func slice(_ bytes: [UInt8], _ range: ByteRange) -> String {
    String(decoding: bytes[range.bounds], as: UTF8.self)
}

/// Feeds a parser the bytes in growing pieces that end at `cuts`, then whole; returns the first final outcome.
func parseRequest(_ bytes: [UInt8], cuts: [Int] = [], maximumHeadBytes: Int = 16384, maximumFields: Int = 100) -> String
{
    var parser = RequestParser(maximumHeadBytes: maximumHeadBytes)
    var head = RequestHead(maximumFields: maximumFields)
    for cut in cuts + [bytes.count] {
        let outcome = parser.parse(bytes.span.extracting(first: cut), into: &head)
        if outcome != .needMore || cut == bytes.count { return describe(outcome, head, bytes) }
    }
    return "incomplete"
}

func parseResponse(
    _ bytes: [UInt8], to method: Method, cuts: [Int] = [], maximumHeadBytes: Int = 16384, maximumFields: Int = 100
) -> String {
    var parser = ResponseParser(maximumHeadBytes: maximumHeadBytes)
    var head = ResponseHead(maximumFields: maximumFields)
    for cut in cuts + [bytes.count] {
        let outcome = parser.parse(bytes.span.extracting(first: cut), requestMethod: method, into: &head)
        if outcome != .needMore || cut == bytes.count { return describe(outcome, head, bytes) }
    }
    return "incomplete"
}

/// The decoded form of a chunked body.
///
/// The bytes arrive in pieces that end at `cuts`; between calls only unread bytes are buffered, as a connection does.
func decodeChunked(
    _ bytes: [UInt8], cuts: [Int] = [], maximumTrailerBytes: Int = 8192, isUpstream: Bool = false
) -> String {
    var decoder = ChunkedDecoder(
        maximumExtensionBytes: 256, maximumTrailerBytes: maximumTrailerBytes, isUpstream: isUpstream)
    var waiting: [UInt8] = []
    var data: [UInt8] = []
    var trailers = ""
    var fed = 0
    for cut in cuts + [bytes.count] {
        waiting += bytes[fed..<cut]
        fed = cut
        var offset = 0
        reading: while true {
            switch decoder.next(waiting.span, from: &offset) {
            case .data(let range): data += waiting[range.bounds]
            case .trailer(let field): trailers += " \(slice(waiting, field.name))=\(slice(waiting, field.value))"
            case .needMore: break reading
            case .failure(let failure): return failure.code.rawValue
            case .end:
                let rest = waiting.count - offset + bytes.count - fed
                return "'\(String(decoding: data, as: UTF8.self))'\(trailers)" + (rest == 0 ? "" : " rest=\(rest)")
            }
        }
        waiting.removeFirst(offset)
    }
    return "incomplete"
}
