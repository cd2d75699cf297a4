internal import CNghttp2

extension HTTP2Session {
    /// Creates nghttp2's session and submits our settings.
    func setUp(context: UnsafeMutableRawPointer) -> Bool {
        var callbacks: OpaquePointer?
        guard unsafe nghttp2_session_callbacks_new(&callbacks) == 0 else { return false }
        defer { unsafe nghttp2_session_callbacks_del(callbacks) }
        if let callbacks = unsafe callbacks { unsafe HTTP2Callbacks.register(callbacks) }
        var option: OpaquePointer?
        guard unsafe nghttp2_option_new(&option) == 0 else { return false }
        defer { unsafe nghttp2_option_del(option) }
        unsafe nghttp2_option_set_no_auto_window_update(option, 1)
        unsafe nghttp2_option_set_no_closed_streams(option, 1)
        unsafe nghttp2_option_set_max_reserved_remote_streams(option, 0)
        // One CONTINUATION per accepted KiB, with a minimum for legitimate clients.
        unsafe nghttp2_option_set_max_continuations(option, max(8, parts.options.headerBytes / 1024 &+ 2))
        // The checks of requests are HeadWriter's, which passes over long values 16 bytes at a time.
        if parts.isServer, !parts.options.checksRequestsTwice { unsafe nghttp2_option_set_no_http_messaging(option, 1) }
        // Defense in depth: our own limit is lower.
        let resets = UInt64(max(parts.options.maximumResets, 1))
        unsafe nghttp2_option_set_stream_reset_rate_limit(option, resets &* 2, max(resets / 5, 1))
        var allocator = unsafe parts.memory.pool.allocator
        let made =
            unsafe parts.isServer
            ? nghttp2_session_server_new3(&parts.handle, callbacks, context, option, &allocator)
            : nghttp2_session_client_new3(&parts.handle, callbacks, context, option, &allocator)
        return made == 0 && submitSettings()
    }

    private func submitSettings() -> Bool {
        var settings = [
            setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, parts.options.initialWindow),
            setting(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, parts.options.headerBytes),
        ]
        if parts.isServer {
            settings.append(setting(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, parts.options.maximumConcurrentStreams))
            // RFC 8441 §3.
            settings.append(setting(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1))
            // RFC 9218 §2.1: PRIORITY frames are ignored, there is no tree to churn.
            settings.append(setting(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1))
        } else {
            settings.append(setting(NGHTTP2_SETTINGS_ENABLE_PUSH, 0))
        }
        let submitted = unsafe settings.withUnsafeBufferPointer { list in
            unsafe nghttp2_submit_settings(parts.handle, FrameFlag.none, list.baseAddress, list.count)
        }
        let window = Int32(clamping: parts.options.connectionWindow)
        guard submitted == 0 else { return false }
        return unsafe nghttp2_session_set_local_window_size(parts.handle, FrameFlag.none, 0, window) == 0
    }

    private func setting(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
        nghttp2_settings_entry(
            settings_id: Int32(id.rawValue), value: UInt32(clamping: min(max(value, 0), 0x7FFF_FFFF)))
    }
}
