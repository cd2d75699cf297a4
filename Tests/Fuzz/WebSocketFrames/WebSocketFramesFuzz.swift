import MartletCore
import MartletHTTP

/// Follows the input as frames, whole and in pieces: the same bytes pass, and they are a beginning of the input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 1 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: data + 1, count: size - 1))
    let sender: WebSocketFrameTracker.Sender = data[0] & 1 == 0 ? .client : .server
    let extended = size & 1 == 0
    let whole = follow(bytes, from: sender, extended, step: bytes.count, stops: false)
    precondition(whole == follow(bytes, from: sender, extended, step: Int(data[0] >> 1) % 24 + 1, stops: false))
    precondition(whole == follow(bytes, from: sender, extended, step: Int(data[0] >> 1) % 24 + 1, stops: true))
    precondition(bytes.starts(with: whole.passed))
    return 0
}

private struct Outcome: Equatable {
    var passed: [UInt8] = []
    var violation: WebSocketViolation?
    var isBetweenFrames = true
    var hasClosed = false
}

private func follow(
    _ bytes: [UInt8], from sender: WebSocketFrameTracker.Sender, _ extended: Bool, step: Int, stops: Bool
) -> Outcome {
    var tracker = WebSocketFrameTracker(from: sender)
    tracker.hasExtensions = extended
    var result = Outcome()
    var fed = 0
    feeding: while fed < bytes.count {
        let piece = Array(bytes[fed..<min(fed + step, bytes.count)])
        fed += piece.count
        var offset = 0
        reading: while true {
            let before = offset
            switch tracker.next(piece.span, from: &offset, stopsBetweenFrames: stops) {
            case .pass(let range):
                precondition(!range.isEmpty && range.start == before && range.end == offset)
                result.passed += piece[range.bounds]
            case .passHeader:
                var header = ByteBuffer()
                tracker.appendHeader(to: &header)
                precondition(header.count == tracker.headerBytes && header.count >= 2)
                result.passed += header.array
            case .needMore:
                precondition(offset == piece.count)
                break reading
            case .closed: break reading
            case .violation(let violation):
                result.violation = violation
                break feeding
            }
        }
    }
    result.isBetweenFrames = tracker.isBetweenFrames
    result.hasClosed = tracker.hasClosed
    return result
}
