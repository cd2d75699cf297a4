internal import CNghttp2
internal import MartletCore
internal import MartletHTTP

/// One HTTP/2 connection, client or server, without a socket: bytes in, events and bytes out (RFC 9113).
///
/// nghttp2 does framing, HPACK, flow control and stream states. Heads are exchanged as HTTP/1 text, so that the layers
/// above are independent of the protocol. A session belongs to one event loop and is not thread-safe. After every
/// `receive` and every `takeOutput` the owner must dequeue all events before it calls `receive` again.
///
/// The value is a reference without a reference count. Its owner calls `free()` once, when no copy is used any more.
@safe package struct HTTP2Session {
    private let memory: UnsafeMutablePointer<SessionParts>

    /// The server side of a connection.
    ///
    /// - Parameter pool: the loop's memory; without one the session allocates for itself.
    /// - Throws: `http2.set_up_failed`.
    package static func server(
        _ options: HTTP2Options, pool: HTTP2MemoryPool? = nil
    ) throws(HTTP2Error) -> HTTP2Session {
        try HTTP2Session(options, pool, isServer: true)
    }

    /// The client side of a connection.
    ///
    /// - Parameter pool: the loop's memory; without one the session allocates for itself.
    /// - Throws: `http2.set_up_failed`.
    package static func client(
        _ options: HTTP2Options, pool: HTTP2MemoryPool? = nil
    ) throws(HTTP2Error) -> HTTP2Session {
        try HTTP2Session(options, pool, isServer: false)
    }

    private init(_ options: HTTP2Options, _ pool: HTTP2MemoryPool?, isServer: Bool) throws(HTTP2Error) {
        unsafe memory = .allocate(capacity: 1)
        unsafe memory.initialize(to: SessionParts(options, pool, isServer: isServer))
        guard unsafe setUp(context: memory) else {
            free()
            throw .setUpFailed
        }
    }

    /// The session behind nghttp2's user data.
    @inline(__always)
    init(context: UnsafeMutableRawPointer) {
        unsafe memory = context.assumingMemoryBound(to: SessionParts.self)
    }

    /// Releases the connection's memory.
    package func free() {
        let (pool, ownsPool) = (parts.memory.pool, parts.memory.isOwned)
        unsafe nghttp2_session_del(parts.handle)
        unsafe memory.deinitialize(count: 1)
        unsafe memory.deallocate()
        if ownsPool { pool.destroy() }
    }

    /// The session's state, without the exclusivity checks and reference counts of a class.
    var parts: SessionParts {
        @inline(__always) unsafeAddress { unsafe UnsafePointer(memory) }
        @inline(__always) nonmutating unsafeMutableAddress { unsafe memory }
    }

    package var isServer: Bool { parts.isServer }
    /// No new streams: GOAWAY was sent or received.
    package var isGoingAway: Bool { parts.ending.isGoingAway }
    /// A header block, or the peer's preface up to its first SETTINGS, is incomplete.
    package var isReceivingHead: Bool { parts.input.isReceivingHead }
    /// Body bytes of all streams that wait for flow control.
    package var unsentTotal: Int { parts.output.unsentTotal }

    /// The owner's data about the connection and its streams, in memory that is the session's as long as it lives.
    @unsafe package var owner: UnsafeMutablePointer<OwnerData> { unsafe parts.owner }

    /// The number of open streams.
    package var streams: Int { parts.table.count }

    /// The connection is closed: nothing more will be sent or accepted.
    package var isFinished: Bool {
        guard parts.output.buffer.isEmpty else { return false }
        return unsafe nghttp2_session_want_read(parts.handle) == 0 && nghttp2_session_want_write(parts.handle) == 0
    }

    /// Closes the connection gracefully: the first call announces it, the second rejects new streams.
    ///
    /// Open streams continue. A client calls once.
    package func goAway() {
        parts.output.isExhausted = false
        if parts.isServer, !parts.ending.isGoingAway {
            unsafe nghttp2_submit_shutdown_notice(parts.handle)
        } else if !parts.ending.hasSentGoAway {
            parts.ending.hasSentGoAway = true
            let last = unsafe nghttp2_session_get_last_proc_stream_id(parts.handle)
            unsafe nghttp2_submit_goaway(
                parts.handle, FrameFlag.none, last, HTTP2Code.noError.rawValue, nil, 0)
        }
        parts.ending.isGoingAway = true
    }

    /// Closes the connection immediately: only GOAWAY is still sent.
    package func terminate(_ code: HTTP2Code) {
        parts.ending.isGoingAway = true
        parts.output.isExhausted = false
        if parts.ending.code == nil { parts.ending.code = code }
        unsafe nghttp2_session_terminate_session(parts.handle, code.rawValue)
    }
}

/// The stream IDs that a client has used: the last one, and a bitmap of the 64 before it.
struct PeerStreamIDs {
    private(set) var last: Int32 = 0
    private var used: UInt64 = 0

    /// Inserts an ID that must be greater than all others; `false` if it is not.
    mutating func insert(_ id: Int32) -> Bool {
        guard id > last else { return false }
        let step = UInt64(UInt32(bitPattern: id &- last) / 2)
        used = step < 64 ? used << step | 1 : 1
        last = id
        return true
    }

    /// Whether an ID up to the last one is known to be unused.
    func wasSkipped(_ id: Int32) -> Bool {
        let back = UInt64(UInt32(bitPattern: last &- id) / 2)
        return back < 64 && used >> back & 1 == 0
    }
}

/// The IDs of the streams that were reset here last; the peer may still send on them.
struct RecentResets {
    private var ids: [Int32] = []
    private var next = 0

    mutating func insert(_ id: Int32) {
        if ids.count < HTTP2Limits.recentResets {
            ids.append(id)
        } else {
            ids[next] = id
            next = (next &+ 1) % ids.count
        }
    }

    func contains(_ id: Int32) -> Bool { ids.contains(id) }
}
