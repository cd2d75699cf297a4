internal import MartletCore
internal import MartletHTTP2

/// HTTP/2 over a transport, of either side.
extension Transport {
    /// Bytes of frames per write.
    static let frameBatchBytes = 64 * 1024

    /// Sends a session's frames, as far as the kernel accepts them; the session keeps the others.
    ///
    /// - Parameter frames: scratch space.
    /// - Returns: the outcome, `buffered` if the kernel has accepted some; `nil` when there was nothing to send.
    mutating func sendFrames(of session: HTTP2Session, by frames: inout ByteBuffer, now: Int64) -> WriteOutcome? {
        var outcome: WriteOutcome?
        while output.count < Transport.frameBatchBytes, session.hasOutput {
            frames.removeAll()
            session.takeOutput(into: &frames, upTo: Transport.frameBatchBytes)
            guard !frames.isEmpty else { break }
            switch unsafe send(frames: frames.bytes, now: now) {
            case .failed: return .failed
            case .blocked: return outcome == nil ? .blocked : .buffered
            case let written: outcome = written
            }
        }
        return outcome
    }

    @inline(__always)
    private mutating func send(frames: UnsafeBufferPointer<UInt8>, now: Int64) -> WriteOutcome {
        if isSecure { return unsafe encrypt(frames) ? flush(now: now) : .failed }
        if output.isEmpty { return unsafe send(frames, now: now) }
        unsafe output.append(frames)
        return flush(now: now)
    }
}
