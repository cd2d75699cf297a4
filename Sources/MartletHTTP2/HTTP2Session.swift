internal import CNghttp2
internal import MartletCore
internal import MartletHTTP

/// One HTTP/2 connection, either side of it, without a socket: bytes in, events and bytes out (RFC 9113).
///
/// nghttp2 does framing, HPACK, flow control and stream states. Heads come and go as HTTP/1 text, so that everything
/// above is the same for every wire. A session belongs to one event loop and is not thread-safe. After every `receive`
/// and every `takeOutput` the owner takes all events; it calls `receive` again only when there are none left.
@safe package final class HTTP2Session {
    let options: HTTP2Options
    package let isServer: Bool
    /// nghttp2's side; nil only while this is being made.
    var handle: OpaquePointer?
    private let memory: UnsafeMutablePointer<SessionParts>
    var sinkLimit = 0
    /// nghttp2 has nothing to send until something happens.
    var isQuiet = false
    /// Which bytes are being received.
    var inputStart: UnsafePointer<UInt8>?
    /// Why the connection ends, once it does.
    var ending: HTTP2Code?
    var hasLeft = false
    package internal(set) var isGoingAway = false
    /// A header block has begun and is not complete; before the peer's first SETTINGS also its preface.
    package internal(set) var isReceivingHead = true
    var hasSettings = false
    /// SETTINGS have just been taken: what is sent next shows whether they were good.
    var isTakingSettings = false
    /// The frame that is being read has brought no data yet.
    var isFrameEmpty = true
    package internal(set) var unsentTotal = 0

    /// A server's side: clients of the gateway.
    ///
    /// - Throws: `http2.set_up_failed`.
    package static func server(_ options: HTTP2Options) throws(HTTP2Error) -> HTTP2Session {
        try HTTP2Session(options, isServer: true)
    }

    /// A client's side: an upstream.
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

    /// What changes with nearly every frame.
    var parts: SessionParts {
        @inline(__always) unsafeAddress { unsafe UnsafePointer(memory) }
        @inline(__always) unsafeMutableAddress { unsafe memory }
    }

    /// Streams that are open.
    package var streams: Int { parts.table.count }

    /// The connection has said its last: nothing more will be sent or taken.
    package var isFinished: Bool {
        guard parts.sink.isEmpty else { return false }
        return unsafe nghttp2_session_want_read(handle) == 0 && nghttp2_session_want_write(handle) == 0
    }

    /// Ends the connection without a fuss: first call, no new streams are wanted; second call, none are taken.
    ///
    /// Streams that are open go on. A client's first call is its only one.
    package func goAway() {
        isQuiet = false
        if isServer, !isGoingAway {
            unsafe nghttp2_submit_shutdown_notice(handle)
        } else if !hasLeft {
            hasLeft = true
            let last = unsafe nghttp2_session_get_last_proc_stream_id(handle)
            unsafe nghttp2_submit_goaway(
                handle, FrameFlag.none, last, HTTP2Code.noError.rawValue, nil, 0)
        }
        isGoingAway = true
    }

    /// Ends the connection at once: GOAWAY is all that is still sent.
    package func terminate(_ code: HTTP2Code) {
        isGoingAway = true
        isQuiet = false
        if ending == nil { ending = code }
        unsafe nghttp2_session_terminate_session(handle, code.rawValue)
    }
}

/// Which streams a client has opened: the last number, and which of the 64 before it were used.
struct StreamNumbers {
    private(set) var last: Int32 = 0
    private var used: UInt64 = 0

    /// Takes a number that is above all others; `false` for one that is not.
    mutating func take(_ id: Int32) -> Bool {
        guard id > last else { return false }
        let step = UInt64(UInt32(bitPattern: id &- last) / 2)
        used = step < 64 ? used << step | 1 : 1
        last = id
        return true
    }

    /// Whether a number up to the last one is known never to have been used.
    func wasSkipped(_ id: Int32) -> Bool {
        let back = UInt64(UInt32(bitPattern: last &- id) / 2)
        return back < 64 && used >> back & 1 == 0
    }
}

/// Numbers of the streams that were reset here last: their peer may not know yet.
struct ResetMemory {
    private var ids: [Int32] = []
    private var next = 0

    mutating func remember(_ id: Int32) {
        if ids.count < HTTP2Bounds.rememberedResets {
            ids.append(id)
        } else {
            ids[next] = id
            next = (next &+ 1) % ids.count
        }
    }

    func contains(_ id: Int32) -> Bool { ids.contains(id) }
}
