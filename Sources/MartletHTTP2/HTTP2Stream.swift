internal import MartletCore
internal import MartletHTTP

/// A reference to the state of an open stream, without a reference count: valid until the table closes the stream.
@safe struct HTTP2Stream {
    private let memory: UnsafeMutablePointer<StreamState>

    /// Opens a stream in a block of the pool.
    init(_ id: Int32, _ pool: HTTP2MemoryPool) {
        unsafe memory = pool.allocate(MemoryLayout<StreamState>.size).bindMemory(to: StreamState.self, capacity: 1)
        unsafe memory.initialize(to: StreamState(id: id))
    }

    /// Releases the stream's memory.
    func free(_ pool: HTTP2MemoryPool) {
        state.unsent.release(pool)
        unsafe memory.deinitialize(count: 1)
        unsafe pool.free(memory)
    }

    var id: Int32 { state.id }

    var state: StreamState {
        @inline(__always) unsafeAddress { unsafe UnsafePointer(memory) }
        @inline(__always) nonmutating unsafeMutableAddress { unsafe memory }
    }
}

/// The session's state of one stream.
struct StreamState: ~Copyable {
    let id: Int32
    /// Body bytes that wait for flow control.
    var unsent = BodyBuffer()
    /// Body bytes that were sent.
    var sent = 0
    /// `name: value` lines that follow the body.
    var trailers = ByteBuffer()
    /// The owner got an event of the stream, so it gets `.closed` too.
    var isKnownToOwner = false
    /// Further input is discarded.
    var discardsInput = false
    /// The request (server) or the final response (client) was received.
    var hasHead = false
    /// Bytes of the texts of interim responses.
    var interimBytes = 0
    /// The peer's END_STREAM was received.
    var hasPeerEnded = false
    /// The owner's final head was submitted.
    var isAnswered = false
    /// The owner has submitted the end of its message.
    var isEnding = false
    /// Our END_STREAM was sent.
    var isEnded = false
    /// nghttp2 waits for `nghttp2_session_resume_data`.
    var isDeferred = false
    /// A reset with NO_ERROR follows the rest of the response.
    var resetsAtEnd = false
    /// Why it was reset here; the code that nghttp2 reports may differ.
    var failure: HTTP2Code?
    /// Whether the request is a gRPC call; only set for rejected ones.
    var grpc = GRPCKind.none
    /// The request asked for a tunnel (RFC 8441).
    var isTunnel = false
    var method = Method.other
    /// Server: what the request has said of its body.
    var body = RequestBody()

    enum Method { case head, connect, other }

    init(id: Int32) { self.id = id }
}
