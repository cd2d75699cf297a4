internal import CNghttp2
package import MartletCore
package import MartletHTTP

extension HTTP2Session {
    /// Processes received bytes; `now` is a monotonic time in nanoseconds.
    ///
    /// - Returns: `false` when the connection has ended: the owner sends the remaining output and closes. Pending events
    ///   are still valid.
    package func receive(_ bytes: UnsafeBufferPointer<UInt8>, now: Int64) -> Bool {
        guard parts.ending.code == nil else { return false }
        if parts.queue.isEmpty { _ = parts.writer.dropFinished() }
        if !parts.memory.isInUse {
            parts.memory.isInUse = true
            parts.memory.pool.swapMemory(with: &parts.writer)
        }
        parts.floods.tick(now)
        unsafe parts.input.start = bytes.baseAddress
        unsafe read(bytes)
        unsafe parts.input.start = nil
        if unsafe parts.ending.code == nil
            && nghttp2_session_get_outbound_queue_size(parts.handle) > HTTP2Limits.outboundFrames
        {
            terminate(.enhanceYourCalm)
        }
        parts.output.isExhausted = false
        // Errors of the peer show in the output.
        produce(upTo: HTTP2Limits.pump)
        return parts.ending.code == nil
    }

    /// Feeds nghttp2 frame by frame.
    private func read(_ bytes: UnsafeBufferPointer<UInt8>) {
        var fed = 0
        var index = 0
        while index < bytes.count {
            switch unsafe parts.input.scanner.next(bytes, at: &index) {
            case .frame(let header):
                guard checkFrame(header) else { return terminate(parts.ending.code ?? .internalError) }
                guard header.length == 0 else { continue }
                _ = unsafe parts.input.scanner.next(bytes, at: &index)
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
        let consumed = unsafe nghttp2_session_mem_recv(parts.handle, bytes.baseAddress, bytes.count)
        if consumed < 0 { terminate(parts.ending.code ?? HTTP2Code(failure: consumed)) }
        if parts.input.isApplyingSettings {
            parts.output.isExhausted = false
            produce(upTo: HTTP2Limits.pump)
            parts.input.isApplyingSettings = false
        }
        return parts.ending.code == nil
    }

    /// Dequeues the next event.
    package func nextEvent() -> HTTP2Event? {
        let event = parts.queue.dequeue()
        guard event == nil else { return event }
        if !parts.aborted.isEmpty { parts.aborted.removeAll() }
        returnMemory()
        return nil
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
        unsafe buffer.append(headText)
    }

    /// Server: fills `head` with the request of the event that was dequeued last.
    ///
    /// The head is what the parser reads in `headText`, which its offsets refer to.
    package func fill(_ head: inout RequestHead, _ parser: inout RequestParser) -> HeadOutcome {
        unsafe parser.parse(
            headText.span, offsets: parts.writer.offsets.part(parts.queue.offsetsStart, parts.queue.offsetsCount),
            into: &head)
    }

    /// The text of the event that was dequeued last; valid until the next `receive`.
    @unsafe package var headText: UnsafeBufferPointer<UInt8> {
        unsafe parts.writer.text.bytes.part(parts.queue.textStart, parts.queue.textStart &+ parts.queue.textCount)
    }

    /// Body bytes were consumed: returns flow-control credit for the stream.
    ///
    /// The connection's credit was returned on receipt, so that a stream that is not read does not block others.
    package func consume(_ stream: Int32, _ count: Int) {
        guard count > 0, parts.table.find(stream) != nil else { return }
        parts.output.isExhausted = false
        unsafe nghttp2_session_consume_stream(parts.handle, stream, count)
    }

    /// Gives the memory of the texts back to the pool once they were consumed.
    private func returnMemory() {
        guard parts.memory.isInUse, !parts.writer.isOpen else { return }
        parts.memory.isInUse = false
        if parts.writer.dropFinished() > HTTP2Limits.pooledTextBytes { parts.writer.text.release() }
        parts.memory.pool.swapMemory(with: &parts.writer)
    }
}

/// nghttp2's callbacks for receiving; `false` ends the connection with `ending`.
extension HTTP2Session {
    /// Checks a frame by its header, before nghttp2 processes it.
    private func checkFrame(_ header: FrameHeader) -> Bool {
        parts.input.isFrameEmpty = true
        if header.type != FrameType.continuation { isWriting = false }
        if let kind = floodKind(header), !parts.floods.count(kind) { return endConnection(.enhanceYourCalm) }
        // nghttp2 does not check this when priorities are disabled (RFC 9113 §6.3).
        if header.type == FrameType.priority, header.stream == 0 { return endConnection(.protocolError) }
        return !parts.isServer || isInOrder(header)
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
        if parts.ending.isGoingAway || parts.table.find(id) != nil || parts.resets.contains(id) { return true }
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
        case FrameType.reset: parts.isServer ? .reset : nil
        default: .other
        }
    }

    func didBeginHeaders(_ header: nghttp2_frame_hd, _ category: nghttp2_headers_category) -> Bool {
        let id = header.stream_id
        let ends = header.flags & FrameFlag.endStream != 0
        parts.cache.begin()
        if parts.isServer, category == NGHTTP2_HCAT_REQUEST {
            _ = parts.table.open(id)
            parts.floods.creditStream()
            useRoundRobin(id)
            parts.writer.begin(.request, ends: ends)
        } else if let stream = parts.table.find(id) {
            if parts.isServer {
                parts.writer.begin(.trailers, ends: ends, body: stream.state.body)
            } else {
                parts.writer.begin(
                    stream.state.hasHead ? .trailers : .response, ends: ends,
                    hasNoBody: stream.state.method != .other)
            }
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
        unsafe nghttp2_session_change_extpri_stream_priority(parts.handle, id, &priority, 1)
    }

    func didReadField(_ header: nghttp2_frame_hd, _ name: OpaquePointer, _ value: OpaquePointer) -> FieldOutcome {
        unsafe parts.cache.add(name, value, to: &parts.writer)
        if parts.isServer, parts.writer.isMalformed {
            resetMalformed(header.stream_id)
            didReceiveInvalidFrame(header)
            return .skipBlock
        }
        // Decoding continues, within a limit, so that the connection survives and the client gets a response.
        if parts.writer.decoded <= parts.options.headerBytes &+ HTTP2Limits.headerExcessBytes { return .next }
        _ = endConnection(.enhanceYourCalm)
        return .endConnection
    }

    /// Resets a stream whose request is malformed (RFC 9113 §8.1.1).
    private func resetMalformed(_ id: Int32) {
        // nghttp2 closes a stream whose response was sent before our reset is, and then without an error.
        if let stream = parts.table.find(id) {
            stream.state.discardsInput = true
            stream.state.failure = .protocolError
        }
        unsafe nghttp2_submit_rst_stream(parts.handle, FrameFlag.none, id, HTTP2Code.protocolError.rawValue)
    }

    func didReceiveFrame(_ frame: UnsafePointer<nghttp2_frame>) -> Bool {
        let header = unsafe frame.pointee.hd
        switch header.type {
        case FrameType.headers:
            isWriting = false
            return didReceiveHead(header.stream_id)
        case FrameType.data: return didReceiveDataFrame(header)
        case FrameType.settings where header.flags & FrameFlag.acknowledgement == 0:
            parts.input.isApplyingSettings = true
            if !parts.input.hasSettings { parts.input.isReceivingHead = isWriting }
            parts.input.hasSettings = true
        case FrameType.goAway:
            if !parts.isServer { parts.ending.isGoingAway = true }
            let code = unsafe HTTP2Code(rawValue: frame.pointee.goaway.error_code)
            parts.queue.enqueue(.goAway(lastStream: unsafe frame.pointee.goaway.last_stream_id, code: code))
        default: break
        }
        return true
    }

    private func didReceiveDataFrame(_ header: nghttp2_frame_hd) -> Bool {
        if header.flags & FrameFlag.endStream != 0 {
            guard let stream = parts.table.find(header.stream_id) else { return true }
            if parts.isServer, !stream.state.body.isComplete {
                resetMalformed(stream.id)
            } else if !stream.state.discardsInput {
                stream.state.hasPeerEnded = true
                parts.queue.enqueue(.end(stream: stream.id))
            }
            return true
        }
        // Only padding.
        guard parts.input.isFrameEmpty, header.length > 0 else { return true }
        return parts.floods.count(.empty) || endConnection(.enhanceYourCalm)
    }

    private func didReceiveHead(_ id: Int32) -> Bool {
        let result = parts.writer.finish()
        if parts.isServer, result == .malformed {
            resetMalformed(id)
            return true
        }
        if parts.isServer { parts.table.find(id)?.state.body = parts.writer.body }
        guard let stream = parts.table.find(id), !stream.state.discardsInput else {
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
            if parts.isServer, !parts.floods.count(.reset, weight: weight) { return endConnection(.enhanceYourCalm) }
            stream.state.discardsInput = true
            stream.state.isKnownToOwner = true
            stream.state.grpc = parts.writer.seen.grpc
            stream.state.resetsAtEnd = !parts.writer.ends
            parts.queue.enqueue(.refused(stream: id, failure))
            if !parts.isServer { resetForError(stream, .cancel) }
        }
        return true
    }

    private func announce(_ stream: HTTP2Stream) {
        stream.state.isKnownToOwner = true
        switch parts.writer.kind {
        case .trailers:
            stream.state.hasPeerEnded = true
            parts.queue.enqueue(.trailers(stream: stream.id), parts.writer)
            parts.queue.enqueue(.end(stream: stream.id))
        case .response where parts.writer.status < 200:
            stream.state.interimBytes &+= parts.writer.currentCount
            guard stream.state.interimBytes <= HTTP2Limits.interimBytes, !parts.writer.ends else {
                _ = resetForError(stream, .protocolError)
                return
            }
            parts.queue.enqueue(.interim(stream: stream.id), parts.writer)
        case .request, .response:
            stream.state.hasHead = true
            stream.state.isTunnel = parts.writer.request.isTunnel
            stream.state.hasPeerEnded = parts.writer.ends
            parts.queue.enqueue(.head(stream: stream.id, ends: parts.writer.ends), parts.writer)
        }
    }

    /// Resets a stream because of an error of the peer.
    @discardableResult private func resetForError(_ stream: HTTP2Stream, _ code: HTTP2Code) -> Bool {
        stream.state.discardsInput = true
        stream.state.failure = code
        unsafe nghttp2_submit_rst_stream(
            parts.handle, FrameFlag.none, stream.id, code.rawValue)
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
        parts.table.find(header.stream_id)?.state.discardsInput = true
    }

    func didReceiveData(_ id: Int32, _ data: UnsafePointer<UInt8>, _ count: Int) -> Bool {
        parts.input.isFrameEmpty = false
        unsafe nghttp2_session_consume_connection(parts.handle, count)
        if parts.isServer, let stream = parts.table.find(id) {
            stream.state.body.received &+= count
            if stream.state.body.isTooLong {
                resetMalformed(id)
                return true
            }
        }
        guard let stream = parts.table.find(id), !stream.state.discardsInput, let start = unsafe parts.input.start
        else {
            unsafe nghttp2_session_consume_stream(parts.handle, id, count)
            return true
        }
        parts.queue.enqueue(.data(stream: stream.id, start: unsafe data - start, count: count))
        return true
    }

    func didClose(_ id: Int32, _ code: HTTP2Code) {
        guard let stream = parts.table.find(id) else { return }
        parts.output.unsentTotal &-= stream.state.unsent.count
        if stream.state.isKnownToOwner {
            parts.queue.enqueue(.closed(stream: id, code: stream.state.failure ?? code))
            if !stream.state.hasPeerEnded { parts.aborted.append((id, stream.state.failure ?? code)) }
        }
        parts.table.close(id)
    }

    /// Ends the connection from within a callback.
    func endConnection(_ code: HTTP2Code) -> Bool {
        if parts.ending.code == nil { parts.ending.code = code }
        return false
    }

    /// A header block is being read.
    var isWriting: Bool {
        get { parts.writer.isOpen }
        nonmutating set {
            parts.writer.isOpen = newValue
            if parts.input.hasSettings { parts.input.isReceivingHead = newValue }
        }
    }
}
