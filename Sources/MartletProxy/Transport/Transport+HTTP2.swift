internal import MartletCore
internal import MartletHTTP2

/// HTTP/2 over a transport, of either side.
extension Transport {
    /// Bytes of frames per write.
    static let frameBatchBytes = 64 * 1024

    /// Sends a session's frames, as far as the kernel accepts them; the session keeps the others.
    ///
    /// - Parameter frames: scratch space.
    /// - Returns: what became of the last ones; `nil` when there was nothing to send.
    mutating func sendFrames(of session: HTTP2Session, by frames: inout ByteBuffer, now: Int64) -> WriteOutcome? {
        var outcome: WriteOutcome?
        while output.count < Transport.frameBatchBytes, session.hasOutput {
            frames.removeAll()
            session.takeOutput(into: &frames, upTo: Transport.frameBatchBytes)
            guard !frames.isEmpty else { break }
            if isSecure {
                outcome = unsafe encrypt(frames.bytes) ? flush(now: now) : .failed
            } else if output.isEmpty {
                outcome = unsafe send(frames.bytes, now: now)
            } else {
                unsafe output.append(frames.bytes)
                outcome = flush(now: now)
            }
            if outcome == .failed { break }
        }
        return outcome
    }
}
