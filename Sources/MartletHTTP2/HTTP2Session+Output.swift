internal import CNghttp2
package import MartletCore

extension HTTP2Session {
    /// Appends pending frames until the buffer holds about `limit` bytes.
    ///
    /// Streams can close by this: there may be events afterwards.
    package func takeOutput(into buffer: inout ByteBuffer, upTo limit: Int) {
        if !parts.output.buffer.isEmpty {
            unsafe buffer.append(parts.output.buffer.bytes)
            parts.output.buffer.removeAll()
        }
        swap(&parts.output.buffer, &buffer)
        produce(upTo: limit)
        swap(&parts.output.buffer, &buffer)
    }

    /// Whether `takeOutput` would append something.
    package var hasOutput: Bool {
        if !parts.output.buffer.isEmpty { return true }
        return parts.output.isExhausted ? false : unsafe nghttp2_session_want_write(parts.handle) != 0
    }

    /// Has nghttp2 serialize frames into `sink` until it holds `limit` bytes.
    func produce(upTo limit: Int) {
        guard !parts.output.isExhausted else { return }
        parts.output.limit = limit
        while parts.output.buffer.count < limit, unsafe nghttp2_session_want_write(parts.handle) != 0 {
            var bytes: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(parts.handle, &bytes)
            guard count > 0, let bytes = unsafe bytes else {
                // DATA frames are written by a callback, which stops at the limit.
                if count < 0 { fail() }
                if count < 0 || parts.output.buffer.count < limit { parts.output.isExhausted = true }
                return
            }
            unsafe parts.output.buffer.append(bytes, count: count)
        }
    }

    /// nghttp2 is out of memory: nothing more can be sent.
    private func fail() {
        if parts.ending.code == nil { parts.ending.code = .internalError }
        parts.ending.isGoingAway = true
    }
}

/// nghttp2's callbacks for sending.
extension HTTP2Session {
    /// The number of body bytes, at most `limit`, in the next DATA frame of a stream.
    func readBody(_ id: Int32, _ limit: Int, _ flags: UnsafeMutablePointer<UInt32>) -> Int {
        guard let stream = parts.table.find(id) else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        if stream.state.unsent.isEmpty, !stream.state.isEnding {
            stream.state.isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        let count = min(limit, stream.state.unsent.count)
        unsafe flags.pointee |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
        if stream.state.isEnding, count == stream.state.unsent.count {
            unsafe flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
            if !stream.state.trailers.isEmpty, submitTrailers(stream) {
                unsafe flags.pointee |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
            }
        }
        return count
    }

    /// Writes one DATA frame.
    func writeData(_ id: Int32, _ header: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
        guard let stream = parts.table.find(id), count <= stream.state.unsent.count else {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        unsafe parts.output.buffer.append(header, count: 9)
        unsafe parts.output.buffer.append(stream.state.unsent.bytes.part(0, count))
        let before = stream.state.unsent.count
        stream.state.unsent.consume(count)
        stream.state.sent &+= count
        parts.output.unsentTotal &-= count
        if before >= HTTP2Limits.drained, stream.state.unsent.count < HTTP2Limits.drained, !stream.state.isEnding {
            parts.queue.enqueue(.drained(stream: id))
        }
        return parts.output.buffer.count >= parts.output.limit ? NGHTTP2_ERR_PAUSE.rawValue : 0
    }

    func didSendFrame(_ frame: UnsafePointer<nghttp2_frame>) {
        let header = unsafe frame.pointee.hd
        switch header.type {
        case FrameType.data, FrameType.headers:
            parts.floods.credit()
            if header.flags & FrameFlag.endStream != 0 { didEnd(header.stream_id) }
        case FrameType.reset:
            parts.resets.insert(header.stream_id)
            let code = unsafe HTTP2Code(rawValue: frame.pointee.rst_stream.error_code)
            // RFC 9113 §6.9.2 ends the connection where nghttp2 ends the streams.
            if parts.input.isApplyingSettings, code == .flowControlError { terminate(code) }
            if parts.isServer, code.isProvoked, !parts.floods.count(.reset) {
                terminate(.enhanceYourCalm)
            }
        case FrameType.goAway:
            parts.ending.isGoingAway = true
            let code = unsafe HTTP2Code(rawValue: frame.pointee.goaway.error_code)
            if parts.ending.code == nil, code != .noError { parts.ending.code = code }
        default: break
        }
    }

    /// END_STREAM was sent.
    private func didEnd(_ id: Int32) {
        guard let stream = parts.table.find(id) else { return }
        stream.state.isEnded = true
        guard stream.state.resetsAtEnd else { return }
        if stream.state.isKnownToOwner { parts.queue.enqueue(.closed(stream: id, code: .noError)) }
        forget(stream, .noError)
    }
}
