internal import CNghttp2

private let failure = NGHTTP2_ERR_CALLBACK_FAILURE.rawValue

/// How a header block goes on after one of its fields.
enum FieldOutcome {
    case next
    /// The rest is decoded, and not reported.
    case skipBlock
    case endConnection

    var rawValue: Int32 {
        switch self {
        case .next: 0
        case .skipBlock: NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        case .endConnection: failure
        }
    }
}

/// The session behind nghttp2's user data.
///
/// nghttp2 is only called from the session's own methods, so the session is alive.
@inline(__always)
private func owner(_ context: UnsafeMutableRawPointer?) -> HTTP2Session? {
    guard let context = unsafe context else { return nil }
    return unsafe HTTP2Session(context: context)
}

/// nghttp2's callbacks, which forward to the session.
enum HTTP2Callbacks {
    static func register(_ callbacks: OpaquePointer) {
        unsafe registerReceiving(callbacks)
        unsafe registerSending(callbacks)
    }

    private static func registerReceiving(_ callbacks: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
            guard let session = unsafe owner(context), let frame = unsafe frame else { return failure }
            return unsafe session.didBeginHeaders(frame.pointee.hd, frame.pointee.headers.cat) ? 0 : failure
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback2(callbacks) {
            _, frame, name, value, _, context in
            guard let session = unsafe owner(context), let frame = unsafe frame, let name = unsafe name,
                let value = unsafe value
            else { return failure }
            return unsafe session.didReadField(frame.pointee.hd, name, value).rawValue
        }
        // nghttp2 would drop a malformed field; RFC 9113 §8.2.1 makes the whole message malformed.
        unsafe nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks) { _, _, _, _, _, _, _, _ in
            NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            guard let session = unsafe owner(context), let frame = unsafe frame else { return failure }
            return unsafe session.didReceiveFrame(frame) ? 0 : failure
        }
        unsafe nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, frame, _, context in
            guard let session = unsafe owner(context), let frame = unsafe frame else { return failure }
            unsafe session.didReceiveInvalidFrame(frame.pointee.hd)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, id, data, count, context in
            guard let session = unsafe owner(context), let data = unsafe data else { return failure }
            return unsafe session.didReceiveData(id, data, count) ? 0 : failure
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, id, code, context in
            guard let session = unsafe owner(context) else { return failure }
            session.didClose(id, HTTP2Code(rawValue: code))
            return 0
        }
    }

    private static func registerSending(_ callbacks: OpaquePointer) {
        unsafe nghttp2_session_callbacks_set_send_data_callback(callbacks) { _, frame, header, count, _, context in
            guard let session = unsafe owner(context), let frame = unsafe frame, let header = unsafe header else {
                return failure
            }
            return unsafe session.writeData(frame.pointee.hd.stream_id, header, count)
        }
        unsafe nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, context in
            guard let session = unsafe owner(context), let frame = unsafe frame else { return failure }
            unsafe session.didSendFrame(frame)
            return 0
        }
    }

    /// The data provider of message bodies.
    static var bodySource: nghttp2_data_provider {
        unsafe nghttp2_data_provider(source: nghttp2_data_source(ptr: nil)) { _, id, _, room, flags, _, context in
            guard let session = unsafe owner(context), let flags = unsafe flags else { return Int(failure) }
            return unsafe session.readBody(id, room, flags)
        }
    }
}
