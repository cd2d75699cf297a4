import CNghttp2

/// What arrived on a connection of HTTP/2, or became of a stream.
enum FrameEvent {
    typealias Fields = [(name: String, value: String)]

    /// With the pseudo-header fields, and whether the message ends with it. A second one is a trailer.
    case head(Int32, Fields, isEnd: Bool)
    case data(Int32, [UInt8], isEnd: Bool)
    /// The stream is over, with a code of RFC 9113 §7.
    case closed(Int32, UInt32)
    case goAway
}

/// One side of a connection of HTTP/2, by nghttp2: bytes in, events and bytes out.
final class FrameSession {
    /// What is sent on a stream after its head.
    private final class Body {
        var bytes: ArraySlice<UInt8> = []
        var isEnded = false
        var trailer: FrameEvent.Fields = []
        var isDeferred = false
    }

    private var handle: OpaquePointer?
    private var bodies: [Int32: Body] = [:]
    private var fields: [Int32: FrameEvent.Fields] = [:]
    private var events: [FrameEvent] = []
    /// The most bytes of the next DATA frame.
    var mostData: () -> Int = { 16_384 }
    /// Frames of types that no library has, which go out before the next frame.
    private var foreign: [UInt8] = []

    init(isServer: Bool, settings: [(id: Int, value: Int)]) {
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        nghttp2_option_new(&options)
        defer {
            nghttp2_session_callbacks_del(callbacks)
            nghttp2_option_del(options)
        }
        // Whoever reads gives back the windows.
        nghttp2_option_set_no_auto_window_update(options, 1)
        Self.set(callbacks)
        let context = Unmanaged.passUnretained(self).toOpaque()
        if isServer {
            nghttp2_session_server_new2(&handle, callbacks, context, options)
        } else {
            nghttp2_session_client_new2(&handle, callbacks, context, options)
        }
        submit(settings: settings)
    }

    deinit { nghttp2_session_del(handle) }

    private static func of(_ context: UnsafeMutableRawPointer?) -> FrameSession? {
        context.map { Unmanaged<FrameSession>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func set(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
            if let frame { FrameSession.of(context)?.fields[frame.pointee.hd.stream_id] = [] }
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, context in
            let texts = [(name, nameCount), (value, valueCount)].map {
                String(decoding: UnsafeBufferPointer(start: $0.0, count: $0.1), as: UTF8.self)
            }
            if let frame { FrameSession.of(context)?.fields[frame.pointee.hd.stream_id]?.append((texts[0], texts[1])) }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            if let frame { FrameSession.of(context)?.received(frame.pointee) }
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, id, bytes, count, context in
            let bytes = Array(UnsafeBufferPointer(start: bytes, count: count))
            FrameSession.of(context)?.events.append(.data(id, bytes, isEnd: false))
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, id, code, context in
            FrameSession.of(context)?.events.append(.closed(id, code))
            FrameSession.of(context)?.bodies[id] = nil
            return 0
        }
    }

    private func received(_ frame: nghttp2_frame) {
        let (id, isEnd) = (frame.hd.stream_id, frame.hd.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0)
        switch UInt32(frame.hd.type) {
        case NGHTTP2_HEADERS.rawValue:
            events.append(.head(id, fields.removeValue(forKey: id) ?? [], isEnd: isEnd))
        case NGHTTP2_DATA.rawValue: if isEnd { events.append(.data(id, [], isEnd: true)) }
        case NGHTTP2_GOAWAY.rawValue: events.append(.goAway)
        default: break
        }
    }

    // MARK: Bytes

    /// - Returns: whether the bytes are HTTP/2.
    func receive(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBufferPointer { nghttp2_session_mem_recv(handle, $0.baseAddress, $0.count) } == bytes.count
    }

    /// The bytes that can be sent now.
    func output() -> [UInt8] {
        var output = foreign
        foreign = []
        while true {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(handle, &bytes)
            guard count > 0 else { return output }
            output += UnsafeBufferPointer(start: bytes, count: count)
        }
    }

    /// Sends what can be sent and handles what has happened, until there is nothing of either.
    func exchange(with peer: Peer, _ handle: (FrameEvent) -> Void) {
        while !peer.hasEnded {
            let bytes = output()
            if !bytes.isEmpty { peer.send(bytes) }
            let events = takeEvents()
            if bytes.isEmpty, events.isEmpty { break }
            for event in events { handle(event) }
        }
    }

    /// What has happened since the last call.
    func takeEvents() -> [FrameEvent] {
        defer { events = [] }
        return events
    }

    /// Gives back the windows of bytes that were read.
    func consumed(_ count: Int, of id: Int32) { nghttp2_session_consume(handle, id, count) }

    /// Whether nothing will come or go any more.
    var isOver: Bool { nghttp2_session_want_read(handle) == 0 && nghttp2_session_want_write(handle) == 0 }

    // MARK: Frames

    private func withList<Result>(
        _ fields: FrameEvent.Fields, _ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result
    ) -> Result {
        var text = fields.flatMap { Array($0.name.utf8) + Array($0.value.utf8) }
        return text.withUnsafeMutableBufferPointer { text in
            var position = text.baseAddress
            let list = fields.map { field in
                let (name, value) = (field.name.utf8.count, field.value.utf8.count)
                defer { position = position?.advanced(by: name + value) }
                return nghttp2_nv(
                    name: position, value: position?.advanced(by: name), namelen: name, valuelen: value, flags: 0)
            }
            return list.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
        }
    }

    private func withSource<Result>(
        _ hasBody: Bool, _ body: (UnsafePointer<nghttp2_data_provider>?) -> Result
    ) -> Result {
        guard hasBody else { return body(nil) }
        let source = nghttp2_data_provider(source: nghttp2_data_source(ptr: nil)) {
            _, id, target, room, flags, _, context in
            FrameSession.of(context)?.fill(id, target, room, flags) ?? 0
        }
        return withUnsafePointer(to: source, body)
    }

    private func fill(
        _ id: Int32, _ target: UnsafeMutablePointer<UInt8>?, _ room: Int, _ flags: UnsafeMutablePointer<UInt32>?
    ) -> Int {
        guard let body = bodies[id], let target, let flags else { return 0 }
        guard !body.bytes.isEmpty || body.isEnded else {
            body.isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        let part = body.bytes.prefix(min(room, max(mostData(), 1)))
        body.bytes = body.bytes.dropFirst(part.count)
        part.withUnsafeBufferPointer { if let base = $0.baseAddress { target.update(from: base, count: $0.count) } }
        guard body.isEnded, body.bytes.isEmpty else { return part.count }
        flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        if !body.trailer.isEmpty {
            flags.pointee |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
            _ = withList(body.trailer) { nghttp2_submit_trailer(handle, id, $0, $1) }
        }
        return part.count
    }

    /// - Returns: the stream's id; `nil` if the connection takes no more.
    func request(_ fields: FrameEvent.Fields, hasBody: Bool) -> Int32? {
        let id = withSource(hasBody) { source in
            withList(fields) { nghttp2_submit_request(handle, nil, $0, $1, source, nil) }
        }
        guard id > 0 else { return nil }
        if hasBody { bodies[id] = Body() }
        return id
    }

    func interim(_ id: Int32, _ fields: FrameEvent.Fields) {
        _ = withList(fields) { nghttp2_submit_headers(handle, 0, id, nil, $0, $1, nil) }
    }

    func respond(_ id: Int32, _ fields: FrameEvent.Fields, hasBody: Bool) {
        if hasBody { bodies[id] = Body() }
        _ = withSource(hasBody) { source in
            withList(fields) { nghttp2_submit_response(handle, id, $0, $1, source) }
        }
    }

    func append(_ bytes: [UInt8], to id: Int32) { feed(id) { $0.bytes += bytes } }

    func end(_ id: Int32, trailer: FrameEvent.Fields = []) {
        feed(id) { body in
            body.isEnded = true
            body.trailer = trailer
        }
    }

    /// Bytes of a stream that have not been sent.
    func unsent(_ id: Int32) -> Int { bodies[id].map { $0.bytes.count + ($0.isEnded ? 0 : 1) } ?? 0 }

    private func feed(_ id: Int32, _ change: (Body) -> Void) {
        guard let body = bodies[id] else { return }
        change(body)
        if body.isDeferred {
            body.isDeferred = false
            nghttp2_session_resume_data(handle, id)
        }
    }

    func reset(_ id: Int32, _ code: Int) { nghttp2_submit_rst_stream(handle, 0, id, UInt32(code)) }
    func ping() { nghttp2_submit_ping(handle, 0, nil) }
    func goAway(last id: Int32? = nil) {
        nghttp2_submit_goaway(
            handle, 0, id ?? nghttp2_session_get_last_proc_stream_id(handle), NGHTTP2_NO_ERROR.rawValue, nil, 0)
    }

    func submit(settings: [(id: Int, value: Int)]) {
        let list = settings.map { nghttp2_settings_entry(settings_id: Int32($0.id), value: UInt32($0.value)) }
        nghttp2_submit_settings(handle, 0, list, list.count)
    }

    /// Widens the window of the connection, or of a stream.
    func widen(_ id: Int32, by count: Int) { nghttp2_submit_window_update(handle, 0, id, Int32(count)) }

    func prioritize(_ id: Int32) {
        var priority = nghttp2_priority_spec()
        nghttp2_priority_spec_init(&priority, 0, 7, 0)
        nghttp2_submit_priority(handle, 0, id, &priority)
    }

    /// A frame of a type that is unknown, which every receiver has to ignore.
    func submitForeign(type: UInt8, _ bytes: [UInt8]) {
        foreign += [0, UInt8(bytes.count >> 8), UInt8(bytes.count & 0xff), type, 0, 0, 0, 0, 0] + bytes
    }
}
