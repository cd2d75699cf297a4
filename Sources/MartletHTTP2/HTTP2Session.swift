internal import CNghttp2
internal import MartletCore
internal import MartletHTTP

/// One HTTP/2 connection, client or server, without a socket: bytes in, events and bytes out (RFC 9113).
///
/// nghttp2 does framing, HPACK, flow control and stream states. Heads are exchanged as HTTP/1 text, so that the layers
/// above are independent of the protocol. A session belongs to one event loop and is not thread-safe. After every
/// `receive` and every `takeOutput` the owner must dequeue all events before it calls `receive` again.
@safe package final class HTTP2Session {
    let options: HTTP2Options
    package let isServer: Bool
    /// nghttp2's session; nil only during initialization.
    var handle: OpaquePointer?
    private let memory: UnsafeMutablePointer<SessionParts>
    var sinkLimit = 0
    /// nghttp2 has no output until the next input or submission.
    var hasNothingToSend = false
    /// The start of the bytes that are being received.
    var inputStart: UnsafePointer<UInt8>?
    /// Why the connection ends, once it is ending.
    var ending: HTTP2Code?
    var hasSentGoAway = false
    package internal(set) var isGoingAway = false
    /// A header block, or the peer's preface up to its first SETTINGS, is incomplete.
    package internal(set) var isReceivingHead = true
    var hasSettings = false
    /// SETTINGS were just processed: the next output shows whether they were valid.
    var isApplyingSettings = false
    /// The current frame has contained no data so far.
    var isFrameEmpty = true
    package internal(set) var unsentTotal = 0

    /// The server side of a connection.
    ///
    /// - Throws: `http2.set_up_failed`.
    package static func server(_ options: HTTP2Options) throws(HTTP2Error) -> HTTP2Session {
        try HTTP2Session(options, isServer: true)
    }

    /// The client side of a connection.
    ///
    /// - Throws: `http2.set_up_failed`.
    package static func client(_ options: HTTP2Options) throws(HTTP2Error) -> HTTP2Session {
        try HTTP2Session(options, isServer: false)
    }

    private init(_ options: HTTP2Options, isServer: Bool) throws(HTTP2Error) {
        self.options = options
        self.isServer = isServer
        unsafe handle = nil
        unsafe inputStart = nil
        unsafe memory = .allocate(capacity: 1)
        unsafe memory.initialize(to: SessionParts(options, isServer: isServer))
        guard setUp() else { throw .setUpFailed }
    }

    deinit {
        unsafe nghttp2_session_del(handle)
        unsafe memory.deinitialize(count: 1)
        unsafe memory.deallocate()
    }

    /// The state that changes with nearly every frame.
    var parts: SessionParts {
        @inline(__always) unsafeAddress { unsafe UnsafePointer(memory) }
        @inline(__always) unsafeMutableAddress { unsafe memory }
    }

    /// The number of open streams.
    package var streams: Int { parts.table.count }

    /// The connection is closed: nothing more will be sent or accepted.
    package var isFinished: Bool {
        guard parts.sink.isEmpty else { return false }
        return unsafe nghttp2_session_want_read(handle) == 0 && nghttp2_session_want_write(handle) == 0
    }

    /// Closes the connection gracefully: the first call announces it, the second rejects new streams.
    ///
    /// Open streams continue. A client calls once.
    package func goAway() {
        hasNothingToSend = false
        if isServer, !isGoingAway {
            unsafe nghttp2_submit_shutdown_notice(handle)
        } else if !hasSentGoAway {
            hasSentGoAway = true
            let last = unsafe nghttp2_session_get_last_proc_stream_id(handle)
            unsafe nghttp2_submit_goaway(
                handle, FrameFlag.none, last, HTTP2Code.noError.rawValue, nil, 0)
        }
        isGoingAway = true
    }

    /// Closes the connection immediately: only GOAWAY is still sent.
    package func terminate(_ code: HTTP2Code) {
        isGoingAway = true
        hasNothingToSend = false
        if ending == nil { ending = code }
        unsafe nghttp2_session_terminate_session(handle, code.rawValue)
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
