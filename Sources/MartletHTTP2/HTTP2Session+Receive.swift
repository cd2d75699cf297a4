internal import CNghttp2
package import MartletCore

extension HTTP2Session {
    /// Takes bytes from the wire; `now` is a monotonic clock in nanoseconds.
    ///
    /// - Returns: `false` when the connection is over: the owner takes the output, sends what it can of it, and closes.
    ///   The events that were left are still good.
    package func receive(_ bytes: UnsafeBufferPointer<UInt8>, now: Int64) -> Bool {
        guard ending == nil else { return false }
        if parts.queue.isEmpty { dropTakenTexts() }
        parts.noise.tick(now)
        unsafe inputStart = bytes.baseAddress
        unsafe read(bytes)
        unsafe inputStart = nil
        if unsafe ending == nil && nghttp2_session_get_outbound_queue_size(handle) > HTTP2Bounds.outboundFrames {
            terminate(.enhanceYourCalm)
        }
        isQuiet = false
        // What was found wrong with the peer shows in what is sent to it.
        produce(upTo: HTTP2Bounds.pump)
        return ending == nil
    }

    /// Gives nghttp2 frame after frame.
    private func read(_ bytes: UnsafeBufferPointer<UInt8>) {
        var given = 0
        var index = 0
        while index < bytes.count {
            switch unsafe parts.scanner.next(bytes, at: &index) {
            case .frame(let header):
                guard judge(header) else { return terminate(ending ?? .internalError) }
                guard header.length == 0 else { continue }
                _ = unsafe parts.scanner.next(bytes, at: &index)
            case .end: break
            case .more: continue
            }
            guard unsafe give(bytes.part(given, index)) else { return }
            given = index
        }
        _ = unsafe give(bytes.part(given, index))
    }

    private func give(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count > 0 else { return true }
        let taken = unsafe nghttp2_session_mem_recv(handle, bytes.baseAddress, bytes.count)
        if taken < 0 { terminate(ending ?? HTTP2Session.code(ofFailure: taken)) }
        if isTakingSettings {
            isQuiet = false
            produce(upTo: HTTP2Bounds.pump)
            isTakingSettings = false
        }
        return ending == nil
    }

    /// The next thing that happened, or nil.
    package func nextEvent() -> HTTP2Event? {
        let event = parts.queue.next()
        if event == nil, !parts.broken.isEmpty { parts.broken.removeAll() }
        return event
    }

    /// Why a stream was closed before its peer had sent everything, where the event that says so is still to come.
    ///
    /// What came together with a head may show that it is not worth beginning.
    package func endOfBroken(_ stream: Int32) -> HTTP2Code? {
        guard !parts.broken.isEmpty, parts.table.find(stream) == nil else { return nil }
        return parts.broken.first { $0.stream == stream }?.code
    }

    /// Appends the text that belongs to the event taken last.
    package func takeHead(_ stream: Int32, into buffer: inout ByteBuffer) {
        unsafe buffer.append(
            parts.writer.text.bytes.part(parts.queue.textStart, parts.queue.textStart &+ parts.queue.textCount))
    }

    /// Bytes of a body were consumed: the peer may send as many more on this stream.
    ///
    /// The connection's window was opened when they came, so that a stream that nobody reads holds up no other.
    package func consume(_ stream: Int32, _ count: Int) {
        guard count > 0, parts.table.find(stream) != nil else { return }
        isQuiet = false
        unsafe nghttp2_session_consume_stream(handle, stream, count)
    }

    /// Gives the room of the texts that were taken back.
    private func dropTakenTexts() {
        let taken = isWriting ? parts.writer.start : parts.writer.text.count
        guard taken > 0 else { return }
        parts.writer.drop(taken)
        if taken > 4 &* options.headerBytes, parts.writer.text.isEmpty { parts.writer.text.release() }
    }

    /// Why a connection ends that nghttp2 gave up on.
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

/// What nghttp2 tells while it receives; `false` ends the connection with `ending`.
extension HTTP2Session {
    /// Judges a frame by its header, before nghttp2 reads it.
    private func judge(_ header: FrameHeader) -> Bool {
        isFrameEmpty = true
        if header.type != FrameType.continuation { isWriting = false }
        if let kind = kindOfNoise(header), !parts.noise.count(kind) { return over(.enhanceYourCalm) }
        // nghttp2 looks away where priorities are off (RFC 9113 §6.3).
        if header.type == FrameType.priority, header.stream == 0 { return over(.protocolError) }
        return !isServer || isInOrder(header)
    }

    /// Whether a stream of the client that gets HEADERS or DATA is new, open, or was reset here (RFC 9113 §5.1, §5.1.1).
    ///
    /// nghttp2 forgets closed streams and overlooks what still comes for them; here only a stream that we have reset may
    /// get more.
    private func isInOrder(_ header: FrameHeader) -> Bool {
        let id = header.stream
        guard header.type == FrameType.headers || header.type == FrameType.data, id & 1 == 1 else { return true }
        // DATA on an idle stream is nghttp2's to refuse.
        if id > parts.peerStreams.last { return header.type == FrameType.data || parts.peerStreams.take(id) }
        if isGoingAway || parts.table.find(id) != nil || parts.resets.contains(id) { return true }
        return over(parts.peerStreams.wasSkipped(id) ? .protocolError : .streamClosed)
    }

    private func kindOfNoise(_ header: FrameHeader) -> NoiseMeter.Kind? {
        switch header.type {
        case FrameType.data: header.length == 0 && !header.has(FrameFlag.endStream) ? .empty : nil
        case FrameType.continuation: header.length == 0 && !header.has(FrameFlag.endHeaders) ? .empty : nil
        case FrameType.headers: nil
        case FrameType.settings: .settings
        case FrameType.ping: .ping
        case FrameType.priority: .priority
        case FrameType.windowUpdate: .windowUpdate
        // An upstream resets only what we have opened.
        case FrameType.reset: isServer ? .reset : nil
        default: .other
        }
    }

    func didBeginHeaders(_ header: nghttp2_frame_hd, _ category: nghttp2_headers_category) -> Bool {
        let id = header.stream_id
        let ends = header.flags & FrameFlag.endStream != 0
        if isServer, category == NGHTTP2_HCAT_REQUEST {
            _ = parts.table.open(id)
            parts.noise.creditStream()
            takeTurns(id)
            parts.writer.begin(.request, ends: ends)
        } else if let stream = parts.table.find(id) {
            let isTrailer = stream.hasHead
            parts.writer.begin(
                isTrailer ? .trailers : .response, ends: ends, hasNoBody: stream.method != .other)
        } else {
            // A stream that the owner has reset: read for HPACK's sake only.
            parts.writer.begin(.trailers, ends: ends)
        }
        isWriting = true
        return true
    }

    /// Streams share the connection frame by frame, whatever the client says of priorities (RFC 9218 §4.2).
    private func takeTurns(_ id: Int32) {
        var priority = nghttp2_extpri(urgency: UInt32(NGHTTP2_EXTPRI_DEFAULT_URGENCY), inc: 1)
        unsafe nghttp2_session_change_extpri_stream_priority(handle, id, &priority, 1)
    }

    func didReadField(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Bool {
        unsafe parts.writer.add(name, value)
        // Decoding goes on so that the connection survives and the client gets an answer, but not for ever.
        return parts.writer.decoded <= options.headerBytes &+ HTTP2Bounds.headerExcess || over(.enhanceYourCalm)
    }

    func didReceiveFrame(_ frame: UnsafePointer<nghttp2_frame>) -> Bool {
        let header = unsafe frame.pointee.hd
        switch header.type {
        case FrameType.headers:
            isWriting = false
            return didReceiveHead(header.stream_id)
        case FrameType.data: return didReceiveDataFrame(header)
        case FrameType.settings where header.flags & FrameFlag.acknowledgement == 0:
            isTakingSettings = true
            if !hasSettings { isReceivingHead = isWriting }
            hasSettings = true
        case FrameType.goAway:
            if !isServer { isGoingAway = true }
            let code = unsafe HTTP2Code(rawValue: frame.pointee.goaway.error_code)
            parts.queue.add(.goAway(lastStream: unsafe frame.pointee.goaway.last_stream_id, code: code))
        default: break
        }
        return true
    }

    private func didReceiveDataFrame(_ header: nghttp2_frame_hd) -> Bool {
        if header.flags & FrameFlag.endStream != 0 {
            if let stream = parts.table.find(header.stream_id), !stream.isDeaf {
                stream.hasPeerEnded = true
                parts.queue.add(.end(stream: stream.id))
            }
            return true
        }
        // All of it was padding.
        guard isFrameEmpty, header.length > 0 else { return true }
        return parts.noise.count(.empty) || over(.enhanceYourCalm)
    }

    private func didReceiveHead(_ id: Int32) -> Bool {
        let verdict = parts.writer.finish()
        guard let stream = parts.table.find(id), !stream.isDeaf else {
            if verdict == .good { parts.writer.discard() }
            return true
        }
        switch verdict {
        case .good: announce(stream)
        case .malformed: resetForError(stream, .protocolError)
        case .refused(let failure):
            if parts.writer.kind == .trailers { return resetForError(stream, .enhanceYourCalm) }
            // Like resets: little of a client's work makes much of ours, by references into the table 200 times as much.
            let weight = 1 &+ parts.writer.decoded / HTTP2Bounds.refusedBytes
            if isServer, !parts.noise.count(.reset, weight: weight) { return over(.enhanceYourCalm) }
            stream.isDeaf = true
            stream.isAnnounced = true
            stream.isGRPC = parts.writer.isGRPC
            stream.resetsAtEnd = !parts.writer.ends
            parts.queue.add(.refused(stream: id, failure))
            if !isServer { resetForError(stream, .cancel) }
        }
        return true
    }

    private func announce(_ stream: HTTP2Stream) {
        let start = parts.writer.start
        let count = parts.writer.text.count &- start
        stream.isAnnounced = true
        switch parts.writer.kind {
        case .trailers:
            stream.hasPeerEnded = true
            parts.queue.add(.trailers(stream: stream.id), textStart: start, textCount: count)
            parts.queue.add(.end(stream: stream.id))
        case .response where parts.writer.status < 200:
            stream.interims &+= 1
            guard stream.interims <= HTTP2Bounds.interims, !parts.writer.ends else {
                _ = resetForError(stream, .protocolError)
                return
            }
            parts.queue.add(.interim(stream: stream.id), textStart: start, textCount: count)
        case .request, .response:
            stream.hasHead = true
            stream.isTunnel = parts.writer.request.isTunnel
            stream.hasPeerEnded = parts.writer.ends
            parts.queue.add(.head(stream: stream.id, ends: parts.writer.ends), textStart: start, textCount: count)
        }
    }

    /// Resets a stream because of what the peer sent on it.
    @discardableResult private func resetForError(_ stream: HTTP2Stream, _ code: HTTP2Code) -> Bool {
        stream.isDeaf = true
        stream.failure = code
        unsafe nghttp2_submit_rst_stream(
            handle, FrameFlag.none, stream.id, code.rawValue)
        return true
    }

    /// A frame that nghttp2 has answered with a reset or with the connection's end.
    func didRefuseFrame(_ header: nghttp2_frame_hd) {
        if header.type == FrameType.headers {
            // A frame that was refused at its beginning has begun no text: the last one is another's.
            if isWriting { parts.writer.discard() }
            isWriting = false
            if parts.table.find(header.stream_id) == nil { parts.resets.remember(header.stream_id) }
        }
        parts.table.find(header.stream_id)?.isDeaf = true
    }

    func didReceiveData(_ id: Int32, _ data: UnsafePointer<UInt8>, _ count: Int) -> Bool {
        isFrameEmpty = false
        unsafe nghttp2_session_consume_connection(handle, count)
        guard let stream = parts.table.find(id), !stream.isDeaf, let start = unsafe inputStart else {
            unsafe nghttp2_session_consume_stream(handle, id, count)
            return true
        }
        parts.queue.add(.data(stream: stream.id, start: unsafe data - start, count: count))
        return true
    }

    func didClose(_ id: Int32, _ code: HTTP2Code) {
        guard let stream = parts.table.find(id) else { return }
        unsentTotal &-= stream.unsent.count
        if stream.isAnnounced {
            parts.queue.add(.closed(stream: id, code: stream.failure ?? code))
            if !stream.hasPeerEnded { parts.broken.append((id, stream.failure ?? code)) }
        }
        parts.table.close(id)
    }

    /// Ends the connection from within a callback.
    func over(_ code: HTTP2Code) -> Bool {
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
