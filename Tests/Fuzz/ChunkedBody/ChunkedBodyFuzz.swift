import MartletCore
import MartletHTTP

/// Decodes the input as a chunked body, whole and in pieces: both come to the same.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 1 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: data + 1, count: size - 1))
    for isUpstream in [false, true] {
        precondition(
            decode(bytes, step: bytes.count, isUpstream) == decode(bytes, step: Int(data[0]) % 24 + 1, isUpstream))
    }
    return 0
}

private struct Decoded: Equatable {
    var data: [UInt8] = []
    var trailers: [[UInt8]] = []
    var failure: HeadError?
    var rest: Int?
}

private func decode(_ bytes: [UInt8], step: Int, _ isUpstream: Bool) -> Decoded {
    var decoder = ChunkedDecoder(maximumExtensionBytes: 32, maximumTrailerBytes: 128, isUpstream: isUpstream)
    var result = Decoded()
    var waiting: [UInt8] = []
    var fed = 0
    while fed < bytes.count {
        let next = min(fed + step, bytes.count)
        waiting += bytes[fed..<next]
        fed = next
        var offset = 0
        reading: while true {
            let before = offset
            switch decoder.next(waiting.span, from: &offset) {
            case .data(let range):
                precondition(!range.isEmpty && range.start >= before && range.end == offset)
                result.data += waiting[range.bounds]
            case .trailer(let field):
                precondition(field.line.end == offset)
                result.trailers.append(Array(waiting[field.line.bounds]))
            case .needMore: break reading
            case .failure(let failure):
                result.failure = failure
                return result
            case .end:
                result.rest = waiting.count - offset + bytes.count - fed
                return result
            }
        }
        waiting.removeFirst(offset)
    }
    return result
}
