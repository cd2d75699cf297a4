internal import CNghttp2
internal import MartletCore
package import MartletHTTP

extension HTTP2Session {
    /// Server: submits a response head, given as HTTP/1 text; a 1xx status is interim, more may follow.
    ///
    /// Connection-specific fields are omitted. `101` is sent as `200` in response to an extended CONNECT (RFC 8441 §5).
    /// A text that is not a head resets the stream.
    package func submitHead(_ stream: Int32, _ text: UnsafeBufferPointer<UInt8>, ends: Bool) {
        guard let entry = parts.table.find(stream), !entry.state.isAnswered else { return }
        parts.output.isExhausted = false
        if unsafe !submitFast(entry, text, ends: ends), unsafe !submitSlow(entry, text, ends: ends) {
            forget(entry, .internalError)
        }
    }

    /// Submits a head that the response parser accepts; `false` for others.
    ///
    /// The heads of a connection differ little: the parser reuses the fields of the one before.
    private func submitFast(_ stream: HTTP2Stream, _ text: UnsafeBufferPointer<UInt8>, ends: Bool) -> Bool {
        let outcome = unsafe parts.heads.responseParser.parse(
            text.span, requestMethod: .get, into: &parts.heads.response)
        guard case .complete(text.count) = outcome, !parts.heads.response.isHTTP10,
            let code = sentStatus(parts.heads.response.status, stream)
        else { return false }
        parts.heads.lines.begin()
        return unsafe code.withUTF8Buffer { code in
            unsafe parts.heads.lines.add(":status", code)
            let exception = stream.state.isTunnel ? KnownField.secWebSocketAccept : .other
            for index in 0..<parts.heads.response.fields.count {
                unsafe parts.heads.lines.add(parts.heads.response.fields[index], text, except: exception)
            }
            return submitLines(stream, isInterim: parts.heads.response.isInterim, ends: ends)
        }
    }

    /// Submits a head line by line; `false` where it is malformed.
    @inline(never)
    private func submitSlow(_ stream: HTTP2Stream, _ text: UnsafeBufferPointer<UInt8>, ends: Bool) -> Bool {
        guard let status = unsafe StatusDigits.parse(text), let code = sentStatus(status, stream),
            let start = try? unsafe FieldLines.endOfLine(text, from: 9)
        else { return false }
        parts.heads.lines.begin()
        return unsafe code.withUTF8Buffer { code in
            unsafe parts.heads.lines.add(":status", code)
            do throws(FieldLines.Malformed) {
                try unsafe parts.heads.lines.addLines(
                    text, from: start &+ 2, except: stream.state.isTunnel ? "sec-websocket-accept" : "")
            } catch {
                return false
            }
            return submitLines(stream, isInterim: status < 200 && status != 101, ends: ends)
        }
    }

    private func submitLines(_ stream: HTTP2Stream, isInterim: Bool, ends: Bool) -> Bool {
        let (list, count) = unsafe (parts.heads.lines.list, parts.heads.lines.count)
        if isInterim {
            return unsafe nghttp2_submit_headers(
                parts.handle, FrameFlag.none, stream.id, nil, list, count, nil) == 0
        }
        stream.state.isAnswered = true
        stream.state.isEnding = ends
        if ends { return unsafe nghttp2_submit_response(parts.handle, stream.id, list, count, nil) == 0 }
        var source = unsafe HTTP2Callbacks.bodySource
        return unsafe nghttp2_submit_response(parts.handle, stream.id, list, count, &source) == 0
    }

    /// Client: submits a request head, given as HTTP/1 text in origin form.
    ///
    /// - Parameters:
    ///   - acceptsTrailers: whether to send `te: trailers`, which is connection-specific and not in the text.
    /// - Returns: the stream ID, or nil when no stream may be opened or the text is not such a head.
    package func submitRequest(
        _ text: UnsafeBufferPointer<UInt8>, isSecure: Bool, ends: Bool, acceptsTrailers: Bool = false
    ) -> Int32? {
        guard canOpenStream else { return nil }
        parts.heads.lines.begin()
        let method: Method
        if unsafe addFast(text, isSecure: isSecure, acceptsTrailers: acceptsTrailers) {
            method = parts.heads.request.method
        } else {
            guard unsafe addSlow(text, isSecure: isSecure, acceptsTrailers: acceptsTrailers),
                let line = unsafe RequestLine(text)
            else { return nil }
            method = unsafe line.method.spells("HEAD") ? .head : .other
        }
        parts.output.isExhausted = false
        let (list, count) = unsafe (parts.heads.lines.list, parts.heads.lines.count)
        let id: Int32
        if ends {
            id = unsafe nghttp2_submit_request(parts.handle, nil, list, count, nil, nil)
        } else {
            var source = unsafe HTTP2Callbacks.bodySource
            id = unsafe nghttp2_submit_request(parts.handle, nil, list, count, &source, nil)
        }
        guard id > 0 else { return nil }
        let stream = parts.table.open(id)
        stream.state.isKnownToOwner = true
        stream.state.isAnswered = true
        stream.state.isEnding = ends
        stream.state.method = method == .head ? .head : .other
        return id
    }

    /// Adds the fields of a request that the request parser accepts; `false` for others.
    private func addFast(_ text: UnsafeBufferPointer<UInt8>, isSecure: Bool, acceptsTrailers: Bool) -> Bool {
        let outcome = unsafe parts.heads.requestParser.parse(text.span, into: &parts.heads.request)
        guard case .complete(text.count) = outcome, parts.heads.request.methodText.start == 0,
            !parts.heads.request.isHTTP10, !parts.heads.request.isAbsoluteForm, !parts.heads.request.isAuthorityForm
        else { return false }
        let (method, target) = (parts.heads.request.methodText, parts.heads.request.target)
        let authority = parts.heads.request.authority
        unsafe addPseudo(
            method: text.part(method.start, method.end), isSecure: isSecure,
            authority: text.part(authority.start, authority.end), path: text.part(target.start, target.end),
            acceptsTrailers: acceptsTrailers)
        for index in 0..<parts.heads.request.fields.count {
            unsafe parts.heads.lines.add(parts.heads.request.fields[index], text, except: .host)
        }
        return true
    }

    /// Adds the fields of a request line by line; `false` where it is malformed.
    @inline(never)
    private func addSlow(_ text: UnsafeBufferPointer<UInt8>, isSecure: Bool, acceptsTrailers: Bool) -> Bool {
        guard let line = unsafe RequestLine(text) else { return false }
        parts.heads.lines.begin()
        unsafe addPseudo(
            method: line.method, isSecure: isSecure, authority: line.authority, path: line.path,
            acceptsTrailers: acceptsTrailers)
        do throws(FieldLines.Malformed) {
            try unsafe parts.heads.lines.addLines(text, from: line.end, except: "host")
            return true
        } catch {
            return false
        }
    }

    private func addPseudo(
        method: UnsafeBufferPointer<UInt8>, isSecure: Bool, authority: UnsafeBufferPointer<UInt8>,
        path: UnsafeBufferPointer<UInt8>, acceptsTrailers: Bool
    ) {
        let scheme: StaticString = isSecure ? "https" : "http"
        unsafe parts.heads.lines.add(":method", method)
        unsafe parts.heads.lines.add(
            ":scheme", UnsafeBufferPointer(start: scheme.utf8Start, count: scheme.utf8CodeUnitCount))
        unsafe parts.heads.lines.add(":authority", authority)
        unsafe parts.heads.lines.add(":path", path)
        guard acceptsTrailers else { return }
        let word: StaticString = "trailers"
        unsafe parts.heads.lines.add("te", UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    /// Client: how many streams can be open at a time.
    package var streamLimit: Int {
        let peers = unsafe nghttp2_session_get_remote_settings(parts.handle, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        return min(Int(peers), parts.options.maximumConcurrentStreams)
    }

    /// Client: whether a stream can be opened now: within the peer's limit and ours, and no GOAWAY.
    package var canOpenStream: Bool {
        guard !parts.isServer, !parts.ending.isGoingAway, parts.ending.code == nil else { return false }
        guard parts.table.count < streamLimit else { return false }
        return unsafe nghttp2_session_check_request_allowed(parts.handle) != 0
    }

    /// Queues body bytes; they are sent as flow control permits.
    package func send(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let entry = parts.table.find(stream), entry.state.isAnswered, !entry.state.isEnding, bytes.count > 0
        else { return }
        unsafe entry.state.unsent.append(bytes, parts.memory.pool)
        parts.output.unsentTotal &+= bytes.count
        resume(entry)
    }

    /// Ends the body; `trailers` are `name: value` lines, or empty.
    package func end(_ stream: Int32, trailers: UnsafeBufferPointer<UInt8>) {
        guard let entry = parts.table.find(stream), entry.state.isAnswered, !entry.state.isEnding else { return }
        unsafe entry.state.trailers.append(trailers)
        entry.state.isEnding = true
        resume(entry)
    }

    /// Queued body bytes of a stream.
    package func unsent(_ stream: Int32) -> Int { parts.table.find(stream)?.state.unsent.count ?? 0 }

    /// Whether a rejected request, which has no text, is a gRPC call.
    package func rejectedKind(_ stream: Int32) -> GRPCKind { parts.table.find(stream)?.state.grpc ?? .none }

    /// Sent body bytes of a stream.
    package func sent(_ stream: Int32) -> Int { parts.table.find(stream)?.state.sent ?? 0 }

    /// Resets a stream; no more events of it follow.
    ///
    /// With `noError` after `end`, queued data is sent first: the response is complete, only the rest of the request is
    /// not needed (RFC 9113 §8.1).
    package func reset(_ stream: Int32, _ code: HTTP2Code) {
        guard let entry = parts.table.find(stream) else { return }
        if code == .noError, entry.state.isEnding, !entry.state.isEnded {
            entry.state.resetsAtEnd = true
            entry.state.discardsInput = true
            entry.state.isKnownToOwner = false
            return
        }
        forget(entry, code)
    }

    /// Resets a stream with NO_ERROR after its response was sent: the rest of the request is not needed (RFC 9113
    /// §8.1).
    ///
    /// - Returns: `false` when nothing is left to send; else only `.closed` follows.
    package func resetAtEnd(_ stream: Int32) -> Bool {
        guard let entry = parts.table.find(stream), entry.state.isEnding, !entry.state.isEnded else { return false }
        entry.state.resetsAtEnd = true
        entry.state.discardsInput = true
        return true
    }

    /// Resets and removes a stream.
    func forget(_ stream: HTTP2Stream, _ code: HTTP2Code) {
        let id = stream.id
        parts.output.isExhausted = false
        unsafe nghttp2_submit_rst_stream(
            parts.handle, FrameFlag.none, id, code.rawValue)
        parts.resets.insert(id)
        parts.output.unsentTotal &-= stream.state.unsent.count
        parts.table.close(id)
    }

    /// Submits the trailers of a stream whose body was sent; `false` if there are none.
    func submitTrailers(_ stream: HTTP2Stream) -> Bool {
        parts.heads.lines.begin()
        do throws(FieldLines.Malformed) {
            try unsafe parts.heads.lines.addLines(stream.state.trailers.bytes, from: 0, except: "")
        } catch {
            return false
        }
        guard parts.heads.lines.count > 0 else { return false }
        return unsafe nghttp2_submit_trailer(
            parts.handle, stream.id, parts.heads.lines.list, parts.heads.lines.count) == 0
    }

    private func resume(_ stream: HTTP2Stream) {
        parts.output.isExhausted = false
        guard stream.state.isDeferred else { return }
        stream.state.isDeferred = false
        unsafe nghttp2_session_resume_data(parts.handle, stream.id)
    }

    /// The digits to send; nil for a status that HTTP/2 does not have.
    private func sentStatus(_ status: Int, _ stream: HTTP2Stream) -> StatusDigits? {
        guard status >= 100, status < 600 else { return nil }
        if status == 101 { return stream.state.isTunnel ? StatusDigits(200) : nil }
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

    /// The status of a response text, or nil.
    static func parse(_ text: UnsafeBufferPointer<UInt8>) -> Int? {
        guard text.count > 12, unsafe text.part(0, 9).spells("HTTP/1.1 ") else { return nil }
        var status = 0
        for index in 9..<12 {
            let digit = unsafe text[index] &- 0x30
            guard digit < 10 else { return nil }
            status = status &* 10 &+ Int(digit)
        }
        return status
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
