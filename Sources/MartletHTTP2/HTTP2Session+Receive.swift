internal import CNghttp2
package import MartletCore

extension HTTP2Session {
    /// Processes received bytes; `now` is a monotonic time in nanoseconds.
    ///
    /// - Returns: `false` when the connection has ended: the owner sends the remaining output and closes. Pending events
    ///   are still valid.
    package func receive(_ bytes: UnsafeBufferPointer<UInt8>, now: Int64) -> Bool {
        guard ending == nil else { return false }
        if parts.queue.isEmpty { releaseConsumedTexts() }
        parts.floods.tick(now)
        unsafe inputStart = bytes.baseAddress
        unsafe read(bytes)
        unsafe inputStart = nil
        if unsafe ending == nil && nghttp2_session_get_outbound_queue_size(handle) > HTTP2Limits.outboundFrames {
            terminate(.enhanceYourCalm)
        }
        hasNothingToSend = false
        // Errors of the peer show in the output.
        produce(upTo: HTTP2Limits.pump)
        return ending == nil
    }

    /// Feeds nghttp2 frame by frame.
    private func read(_ bytes: UnsafeBufferPointer<UInt8>) {
        var fed = 0
        var index = 0
        while index < bytes.count {
            switch unsafe parts.scanner.next(bytes, at: &index) {
            case .frame(let header):
                guard checkFrame(header) else { return terminate(ending ?? .internalError) }
                guard header.length == 0 else { continue }
                _ = unsafe parts.scanner.next(bytes, at: &index)
            case .end: break
            case .more: continue
            }
            guard unsafe feed(bytes.part(fed, index)) else { return }
            fed = index
        }
        _ = unsafe feed(bytes.part(fed, index))
    }

    private func feed(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count > 0 else { return true }
        let consumed = unsafe nghttp2_session_mem_recv(handle, bytes.baseAddress, bytes.count)
        if consumed < 0 { terminate(ending ?? HTTP2Session.code(ofFailure: consumed)) }
        if isApplyingSettings {
            hasNothingToSend = false
            produce(upTo: HTTP2Limits.pump)
            isApplyingSettings = false
        }
        return ending == nil
    }

    /// Dequeues the next event.
    package func nextEvent() -> HTTP2Event? {
        let event = parts.queue.dequeue()
        if event == nil, !parts.aborted.isEmpty { parts.aborted.removeAll() }
        return event
    }

    /// The error code of a stream that was closed before its peer had finished and whose `.closed` is still queued.
    ///
    /// Lets the owner skip a head whose stream has failed already.
    package func pendingErrorCode(_ stream: Int32) -> HTTP2Code? {
        guard !parts.aborted.isEmpty, parts.table.find(stream) == nil else { return nil }
        return parts.aborted.first { $0.stream == stream }?.code
    }

    /// Appends the text of the event that was dequeued last.
    package func takeHead(_ stream: Int32, into buffer: inout ByteBuffer) {
        unsafe buffer.append(
            parts.writer.text.bytes.part(parts.queue.textStart, parts.queue.textStart &+ parts.queue.textCount))
    }

    /// Body bytes were consumed: returns flow-control credit for the stream.
    ///
    /// The connection's credit was returned on receipt, so that a stream that is not read does not block others.
    package func consume(_ stream: Int32, _ count: Int) {
        guard count > 0, parts.table.find(stream) != nil else { return }
        hasNothingToSend = false
        unsafe nghttp2_session_consume_stream(handle, stream, count)
    }

    /// Releases the memory of consumed texts.
    private func releaseConsumedTexts() {
        let consumed = isWriting ? parts.writer.start : parts.writer.text.count
        guard consumed > 0 else { return }
        parts.writer.drop(consumed)
        if consumed > 4 &* options.headerBytes, parts.writer.text.isEmpty { parts.writer.text.release() }
    }

    /// The error code for a failure of nghttp2.
    private static func code(ofFailure failure: Int) -> HTTP2Code {
        switch Int32(truncatingIfNeeded: failure) {
        case NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue: .protocolError
        case NGHTTP2_ERR_FLOODED.rawValue, NGHTTP2_ERR_TOO_MANY_SETTINGS.rawValue,
            NGHTTP2_ERR_TOO_MANY_CONTINUATIONS.rawValue:
            .enhanceYourCalm
        default: .internalError
        }
    }
}

/// nghttp2's callbacks for receiving; `false` ends the connection with `ending`.
extension HTTP2Session {
    /// Checks a frame by its header, before nghttp2 processes it.
    private func checkFrame(_ header: FrameHeader) -> Bool {
        isFrameEmpty = true
        if header.type != FrameType.continuation { isWriting = false }
        if let kind = floodKind(header), !parts.floods.count(kind) { return endConnection(.enhanceYourCalm) }
        // nghttp2 does not check this when priorities are disabled (RFC 9113 §6.3).
        if header.type == FrameType.priority, header.stream == 0 { return endConnection(.protocolError) }
        return !isServer || isInOrder(header)
    }

    /// Whether a stream of the client that gets HEADERS or DATA is new, open, or was reset here (RFC 9113 §5.1,
    /// §5.1.1).
    ///
    /// nghttp2 ignores frames on closed streams; here only a stream that was reset by us may get more.
    private func isInOrder(_ header: FrameHeader) -> Bool {
        let id = header.stream
        guard header.type == FrameType.headers || header.type == FrameType.data, id & 1 == 1 else { return true }
        // nghttp2 rejects DATA on an idle stream.
        if id > parts.peerStreams.last { return header.type == FrameType.data || parts.peerStreams.insert(id) }
        if isGoingAway || parts.table.find(id) != nil || parts.resets.contains(id) { return true }
        return endConnection(parts.peerStreams.wasSkipped(id) ? .protocolError : .streamClosed)
    }

    private func floodKind(_ header: FrameHeader) -> FrameFloodLimiter.Kind? {
        switch header.type {
        case FrameType.data: header.length == 0 && !header.has(FrameFlag.endStream) ? .empty : nil
        case FrameType.continuation: header.length == 0 && !header.has(FrameFlag.endHeaders) ? .empty : nil
        case FrameType.headers: nil
        case FrameType.settings: .settings
        case FrameType.ping: .ping
        case FrameType.priority: .priority
        case FrameType.windowUpdate: .windowUpdate
        // An upstream can only reset streams that we have opened.
        case FrameType.reset: isServer ? .reset : nil
        default: .other
        }
    }

    func didBeginHeaders(_ header: nghttp2_frame_hd, _ category: nghttp2_headers_category) -> Bool {
        let id = header.stream_id
        let ends = header.flags & FrameFlag.endStream != 0
        if isServer, category == NGHTTP2_HCAT_REQUEST {
            _ = parts.table.open(id)
            parts.floods.creditStream()
            useRoundRobin(id)
            parts.writer.begin(.request, ends: ends)
        } else if let stream = parts.table.find(id) {
            let isTrailer = stream.hasHead
            parts.writer.begin(
                isTrailer ? .trailers : .response, ends: ends, hasNoBody: stream.method != .other)
        } else {
            // A stream that the owner has reset: decoded only to keep the HPACK state.
            parts.writer.begin(.trailers, ends: ends)
        }
        isWriting = true
        return true
    }

    /// Streams share the connection frame by frame, whatever the client's priorities (RFC 9218 §4.2).
    private func useRoundRobin(_ id: Int32) {
        var priority = nghttp2_extpri(urgency: UInt32(NGHTTP2_EXTPRI_DEFAULT_URGENCY), inc: 1)
        unsafe nghttp2_session_change_extpri_stream_priority(handle, id, &priority, 1)
    }

    func didReadField(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Bool {
        unsafe parts.writer.add(name, value)
        // Decoding continues, within a limit, so that the connection survives and the client gets a response.
        return parts.writer.decoded <= options.headerBytes &+ HTTP2Limits.headerExcessBytes
            || endConnection(.enhanceYourCalm)
    }

    func didReceiveFrame(_ frame: UnsafePointer<nghttp2_frame>) -> Bool {
        let header = unsafe frame.pointee.hd
        switch header.type {
        case FrameType.headers:
            isWriting = false
            return didReceiveHead(header.stream_id)
        case FrameType.data: return didReceiveDataFrame(header)
        case FrameType.settings where header.flags & FrameFlag.acknowledgement == 0:
            isApplyingSettings = true
            if !hasSettings { isReceivingHead = isWriting }
            hasSettings = true
        case FrameType.goAway:
            if !isServer { isGoingAway = true }
            let code = unsafe HTTP2Code(rawValue: frame.pointee.goaway.error_code)
            parts.queue.enqueue(.goAway(lastStream: unsafe frame.pointee.goaway.last_stream_id, code: code))
        default: break
        }
        return true
    }

    private func didReceiveDataFrame(_ header: nghttp2_frame_hd) -> Bool {
        if header.flags & FrameFlag.endStream != 0 {
            if let stream = parts.table.find(header.stream_id), !stream.discardsInput {
                stream.hasPeerEnded = true
                parts.queue.enqueue(.end(stream: stream.id))
            }
            return true
        }
        // Only padding.
        guard isFrameEmpty, header.length > 0 else { return true }
        return parts.floods.count(.empty) || endConnection(.enhanceYourCalm)
    }

    private func didReceiveHead(_ id: Int32) -> Bool {
        let result = parts.writer.finish()
        guard let stream = parts.table.find(id), !stream.discardsInput else {
            if result == .valid { parts.writer.discard() }
            return true
        }
        switch result {
        case .valid: announce(stream)
        case .malformed: resetForError(stream, .protocolError)
        case .rejected(let failure):
            if parts.writer.kind == .trailers { return resetForError(stream, .enhanceYourCalm) }
            // Counts like resets: references into the table amplify a client's bytes up to 200 times.
            let weight = 1 &+ parts.writer.decoded / HTTP2Limits.rejectedBytesPerReset
            if isServer, !parts.floods.count(.reset, weight: weight) { return endConnection(.enhanceYourCalm) }
            stream.discardsInput = true
            stream.isKnownToOwner = true
            stream.isGRPC = parts.writer.isGRPC
            stream.resetsAtEnd = !parts.writer.ends
            parts.queue.enqueue(.refused(stream: id, failure))
            if !isServer { resetForError(stream, .cancel) }
        }
        return true
    }

    private func announce(_ stream: HTTP2Stream) {
        let start = parts.writer.start
        let count = parts.writer.text.count &- start
        stream.isKnownToOwner = true
        switch parts.writer.kind {
        case .trailers:
            stream.hasPeerEnded = true
            parts.queue.enqueue(.trailers(stream: stream.id), textStart: start, textCount: count)
            parts.queue.enqueue(.end(stream: stream.id))
        case .response where parts.writer.status < 200:
            stream.interims &+= 1
            guard stream.interims <= HTTP2Limits.interims, !parts.writer.ends else {
                _ = resetForError(stream, .protocolError)
                return
            }
            parts.queue.enqueue(.interim(stream: stream.id), textStart: start, textCount: count)
        case .request, .response:
            stream.hasHead = true
            stream.isTunnel = parts.writer.request.isTunnel
            stream.hasPeerEnded = parts.writer.ends
            parts.queue.enqueue(.head(stream: stream.id, ends: parts.writer.ends), textStart: start, textCount: count)
        }
    }

    /// Resets a stream because of an error of the peer.
    @discardableResult private func resetForError(_ stream: HTTP2Stream, _ code: HTTP2Code) -> Bool {
        stream.discardsInput = true
        stream.failure = code
        unsafe nghttp2_submit_rst_stream(
            handle, FrameFlag.none, stream.id, code.rawValue)
        return true
    }

    /// A frame that nghttp2 has rejected with a reset or by ending the connection.
    func didReceiveInvalidFrame(_ header: nghttp2_frame_hd) {
        if header.type == FrameType.headers {
            // A frame that was rejected at its start has begun no text: the last text belongs to another frame.
            if isWriting { parts.writer.discard() }
            isWriting = false
            if parts.table.find(header.stream_id) == nil { parts.resets.insert(header.stream_id) }
        }
        parts.table.find(header.stream_id)?.discardsInput = true
    }

    func didReceiveData(_ id: Int32, _ data: UnsafePointer<UInt8>, _ count: Int) -> Bool {
        isFrameEmpty = false
        unsafe nghttp2_session_consume_connection(handle, count)
        guard let stream = parts.table.find(id), !stream.discardsInput, let start = unsafe inputStart else {
            unsafe nghttp2_session_consume_stream(handle, id, count)
            return true
        }
        parts.queue.enqueue(.data(stream: stream.id, start: unsafe data - start, count: count))
        return true
    }

    func didClose(_ id: Int32, _ code: HTTP2Code) {
        guard let stream = parts.table.find(id) else { return }
        unsentTotal &-= stream.unsent.count
        if stream.isKnownToOwner {
            parts.queue.enqueue(.closed(stream: id, code: stream.failure ?? code))
            if !stream.hasPeerEnded { parts.aborted.append((id, stream.failure ?? code)) }
        }
        parts.table.close(id)
    }

    /// Ends the connection from within a callback.
    func endConnection(_ code: HTTP2Code) -> Bool {
        if ending == nil { ending = code }
        return false
    }

    /// A header block is being read.
    var isWriting: Bool {
        get { parts.writer.isOpen }
        set {
            parts.writer.isOpen = newValue
            if hasSettings { isReceivingHead = newValue }
        }
    }
}
