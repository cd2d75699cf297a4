internal import CNghttp2
internal import MartletCore

extension HTTP2Session {
    /// Server: submits a response head, given as HTTP/1 text; a 1xx status is interim, more may follow.
    ///
    /// Connection-specific fields are omitted. `101` is sent as `200` in response to an extended CONNECT (RFC 8441 §5).
    /// A text that is not a head resets the stream.
    package func submitHead(_ stream: Int32, _ text: UnsafeBufferPointer<UInt8>, ends: Bool) {
        guard let entry = parts.table.find(stream), !entry.isAnswered else { return }
        hasNothingToSend = false
        guard let status = unsafe HTTP2Session.status(text), let code = sentStatus(status, entry),
            let start = try? unsafe FieldLines.endOfLine(text, from: 9)
        else { return forget(entry, .internalError) }
        parts.lines.begin()
        let isSent = unsafe code.withUTF8Buffer { code in
            unsafe parts.lines.add(":status", code)
            return unsafe submit(entry, text, from: start &+ 2, isInterim: status < 200 && status != 101, ends: ends)
        }
        if !isSent { forget(entry, .internalError) }
    }

    private func submit(
        _ stream: HTTP2Stream, _ text: UnsafeBufferPointer<UInt8>, from start: Int, isInterim: Bool, ends: Bool
    ) -> Bool {
        do throws(FieldLines.Malformed) {
            try unsafe parts.lines.addLines(text, from: start, except: stream.isTunnel ? "sec-websocket-accept" : "")
        } catch {
            return false
        }
        let list = unsafe parts.lines.list
        return unsafe list.withUnsafeBufferPointer { fields in
            if isInterim {
                return unsafe nghttp2_submit_headers(
                    handle, FrameFlag.none, stream.id, nil, fields.baseAddress, fields.count, nil) == 0
            }
            stream.isAnswered = true
            stream.isEnding = ends
            if ends {
                return unsafe nghttp2_submit_response(handle, stream.id, fields.baseAddress, fields.count, nil) == 0
            }
            var source = unsafe HTTP2Callbacks.bodySource
            return unsafe nghttp2_submit_response(handle, stream.id, fields.baseAddress, fields.count, &source) == 0
        }
    }

    /// Client: submits a request head, given as HTTP/1 text in origin form.
    ///
    /// - Parameters:
    ///   - acceptsTrailers: whether to send `te: trailers`, which is connection-specific and not in the text.
    /// - Returns: the stream ID, or nil when no stream may be opened or the text is not such a head.
    package func submitRequest(
        _ text: UnsafeBufferPointer<UInt8>, isSecure: Bool, ends: Bool, acceptsTrailers: Bool = false
    ) -> Int32? {
        guard canOpenStream, let line = unsafe RequestLine(text) else { return nil }
        hasNothingToSend = false
        parts.lines.begin()
        let scheme: StaticString = isSecure ? "https" : "http"
        unsafe parts.lines.add(":method", line.method)
        unsafe parts.lines.add(":scheme", UnsafeBufferPointer(start: scheme.utf8Start, count: scheme.utf8CodeUnitCount))
        unsafe parts.lines.add(":authority", line.authority)
        unsafe parts.lines.add(":path", line.path)
        if acceptsTrailers {
            let word: StaticString = "trailers"
            unsafe parts.lines.add("te", UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
        }
        do throws(FieldLines.Malformed) {
            try unsafe parts.lines.addLines(text, from: line.end, except: "host")
        } catch {
            return nil
        }
        let list = unsafe parts.lines.list
        let id = unsafe list.withUnsafeBufferPointer { fields in
            if ends {
                return unsafe nghttp2_submit_request(handle, nil, fields.baseAddress, fields.count, nil, nil)
            }
            var source = unsafe HTTP2Callbacks.bodySource
            return unsafe nghttp2_submit_request(handle, nil, fields.baseAddress, fields.count, &source, nil)
        }
        guard id > 0 else { return nil }
        let stream = parts.table.open(id)
        stream.isKnownToOwner = true
        stream.isAnswered = true
        stream.isEnding = ends
        stream.method = unsafe line.method.spells("HEAD") ? .head : .other
        return id
    }

    /// Client: whether a stream can be opened now: within the peer's limit and ours, and no GOAWAY.
    package var canOpenStream: Bool {
        guard !isServer, !isGoingAway, ending == nil else { return false }
        let peers = unsafe nghttp2_session_get_remote_settings(handle, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        guard parts.table.count < min(Int(peers), options.maximumConcurrentStreams) else { return false }
        return unsafe nghttp2_session_check_request_allowed(handle) != 0
    }

    /// Queues body bytes; they are sent as flow control permits.
    package func send(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let entry = parts.table.find(stream), entry.isAnswered, !entry.isEnding, bytes.count > 0 else { return }
        unsafe entry.unsent.append(bytes)
        unsentTotal &+= bytes.count
        resume(entry)
    }

    /// Ends the body; `trailers` are `name: value` lines, or empty.
    package func end(_ stream: Int32, trailers: UnsafeBufferPointer<UInt8>) {
        guard let entry = parts.table.find(stream), entry.isAnswered, !entry.isEnding else { return }
        unsafe entry.trailers.append(trailers)
        entry.isEnding = true
        resume(entry)
    }

    /// Queued body bytes of a stream.
    package func unsent(_ stream: Int32) -> Int { parts.table.find(stream)?.unsent.count ?? 0 }

    /// Whether a rejected request, which has no text, is a gRPC call.
    package func isRejectedGRPC(_ stream: Int32) -> Bool { parts.table.find(stream)?.isGRPC ?? false }

    /// Sent body bytes of a stream.
    package func sent(_ stream: Int32) -> Int { parts.table.find(stream)?.sent ?? 0 }

    /// Resets a stream; no more events of it follow.
    ///
    /// With `noError` after `end`, queued data is sent first: the response is complete, only the rest of the request is
    /// not needed (RFC 9113 §8.1).
    package func reset(_ stream: Int32, _ code: HTTP2Code) {
        guard let entry = parts.table.find(stream) else { return }
        if code == .noError, entry.isEnding, !entry.isEnded {
            entry.resetsAtEnd = true
            entry.discardsInput = true
            entry.isKnownToOwner = false
            return
        }
        forget(entry, code)
    }

    /// Resets a stream with NO_ERROR after its response was sent: the rest of the request is not needed (RFC 9113
    /// §8.1).
    ///
    /// - Returns: `false` when nothing is left to send; else only `.closed` follows.
    package func resetAtEnd(_ stream: Int32) -> Bool {
        guard let entry = parts.table.find(stream), entry.isEnding, !entry.isEnded else { return false }
        entry.resetsAtEnd = true
        entry.discardsInput = true
        return true
    }

    /// Resets and removes a stream.
    func forget(_ stream: HTTP2Stream, _ code: HTTP2Code) {
        let id = stream.id
        hasNothingToSend = false
        unsafe nghttp2_submit_rst_stream(
            handle, FrameFlag.none, id, code.rawValue)
        parts.resets.insert(id)
        unsentTotal &-= stream.unsent.count
        parts.table.close(id)
    }

    /// Submits the trailers of a stream whose body was sent; `false` if there are none.
    func submitTrailers(_ stream: HTTP2Stream) -> Bool {
        parts.lines.begin()
        do throws(FieldLines.Malformed) {
            try unsafe parts.lines.addLines(stream.trailers.bytes, from: 0, except: "")
        } catch {
            return false
        }
        let list = unsafe parts.lines.list
        guard unsafe !list.isEmpty else { return false }
        return unsafe list.withUnsafeBufferPointer { fields in
            unsafe nghttp2_submit_trailer(handle, stream.id, fields.baseAddress, fields.count) == 0
        }
    }

    private func resume(_ stream: HTTP2Stream) {
        hasNothingToSend = false
        guard stream.isDeferred else { return }
        stream.isDeferred = false
        unsafe nghttp2_session_resume_data(handle, stream.id)
    }

    /// The status of a response text, or nil.
    private static func status(_ text: UnsafeBufferPointer<UInt8>) -> Int? {
        guard text.count > 12, unsafe text.part(0, 9).spells("HTTP/1.1 ") else { return nil }
        var status = 0
        for index in 9..<12 {
            let digit = unsafe text[index] &- 0x30
            guard digit < 10 else { return nil }
            status = status &* 10 &+ Int(digit)
        }
        return status
    }

    /// The digits to send; nil for a status that HTTP/2 does not have.
    private func sentStatus(_ status: Int, _ stream: HTTP2Stream) -> StatusDigits? {
        guard status >= 100, status < 600 else { return nil }
        if status == 101 { return stream.isTunnel ? StatusDigits(200) : nil }
        return StatusDigits(status)
    }
}

/// The three digits of a status.
struct StatusDigits {
    private var digits: InlineArray<3, UInt8>

    init(_ status: Int) {
        digits = [
            UInt8(truncatingIfNeeded: status / 100 % 10) &+ 0x30, UInt8(truncatingIfNeeded: status / 10 % 10) &+ 0x30,
            UInt8(truncatingIfNeeded: status % 10) &+ 0x30,
        ]
    }

    func withUTF8Buffer<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        unsafe digits.span.withUnsafeBufferPointer { unsafe body($0) }
    }
}

/// The first line and the host of a request's text.
@safe struct RequestLine {
    let method: UnsafeBufferPointer<UInt8>
    let path: UnsafeBufferPointer<UInt8>
    let authority: UnsafeBufferPointer<UInt8>
    /// The offset of the fields.
    let end: Int

    /// - Returns: nil if the text is not a request in origin form with one host, or is a CONNECT.
    init?(_ text: UnsafeBufferPointer<UInt8>) {
        guard let stop = try? unsafe FieldLines.endOfLine(text, from: 0) else { return nil }
        var space = 0
        while space < stop, unsafe text[space] != 0x20 { space &+= 1 }
        guard stop > space &+ 10, unsafe text.part(stop &- 9, stop).spells(" HTTP/1.1") else { return nil }
        unsafe method = text.part(0, space)
        unsafe path = text.part(space &+ 1, stop &- 9)
        end = stop &+ 2
        guard unsafe FieldRules.isToken(method), unsafe FieldRules.isVisible(path), unsafe !method.spells("CONNECT"),
            unsafe path.first == UInt8(ascii: "/") || path.spells("*"),
            let host = unsafe RequestLine.host(text, from: end)
        else { return nil }
        unsafe authority = host
    }

    private static func host(_ text: UnsafeBufferPointer<UInt8>, from start: Int) -> UnsafeBufferPointer<UInt8>? {
        var index = start
        while index < text.count {
            guard let stop = try? unsafe FieldLines.endOfLine(text, from: index), stop > index else { return nil }
            if stop &- index > 5, unsafe text.part(index, index &+ 5).spells(ignoringCase: "host:") {
                var first = index &+ 5
                while first < stop, unsafe text[first] == 0x20 || text[first] == 0x09 { first &+= 1 }
                let value = unsafe text.part(first, stop)
                return unsafe FieldRules.isVisible(value) && !value.isEmpty ? value : nil
            }
            index = stop &+ 2
        }
        return nil
    }
}
