internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletTLS

/// One connection of a client (downstream), or one stream of an HTTP/2 connection.
///
/// A stream has no descriptor: it stands for what an HTTP/1 connection is while one request is under way on it, so that
/// everything above the codec is the same for both.
struct Client: ~Copyable, SlabElement {
    enum Kind: UInt8 {
        /// A connection that carries one request after the other.
        case http1
        /// A connection whose streams carry the requests.
        case http2
        /// One of those streams.
        case stream
    }

    enum Phase: UInt8 {
        /// The PROXY protocol's header comes first.
        case proxyHeader
        /// The TLS handshake is under way.
        case handshake
        /// Waiting for a request head or in the middle of one.
        case head
        /// The head stands in `input` while its credential is judged.
        case authenticating
        /// A request is under way: its body comes, or its answer goes.
        case exchange
        /// Answered and closed for writing; what still comes is thrown away for a moment, so that the answer arrives.
        case lingering
        /// Frames of an HTTP/2 connection come and go.
        case frames
    }

    var generation: UInt32 = 0
    var isAlive = false

    var fd: Int32 = -1
    /// The poller reports what happens on its socket; also where there is none, as of a stream.
    var isWatched = false
    var kind = Kind.http1
    /// Where it came in.
    var listener: Int32 = -1
    var rules = ListenerRules()
    /// Encrypts and decrypts what the connection carries; `nil` in clear text, and while a thread is at the handshake.
    var engine: TLSEngine?
    /// Makes the engine when the first bytes are there; the listener may be gone by then.
    var security: TLSServerContext?
    /// A thread has the engine.
    var isHandshakeOut = false
    /// Events of its socket that wait in the ``HandshakeQueue``.
    var waitingEvents: Readiness = []
    /// The first answer of the handshake has gone out.
    var isHandshakeAnswered = false
    /// Of an HTTP/2 connection.
    var streams: ClientStreams?
    /// Of a stream: its connection, and its number there.
    var connection: Int32 = -1
    var stream: Int32 = 0
    /// Of a stream: everything of the request has come, though not everything may have been used.
    var isStreamEnded = false
    /// Of a stream: its answer has been handed over to the last byte.
    var isAnswered = false
    /// Of a stream: bytes of its answer that had gone out when its deadline was looked at.
    var sentAtCheck = 0
    /// Of an HTTP/2 connection: frames may wait to be written.
    var isDirty = false
    /// Answers before anything is routed, where its listener has such a handler.
    var handler: ListenerHandler?
    var address = ClientAddress()
    /// The socket's peer, as it was counted when it came; another than `address` behind a PROXY protocol header.
    var peerBytes: [UInt8] = []
    /// How it was counted when it came.
    var admission = ConnectionLimit.Admission.counted
    var phase = Phase.head
    /// The exchange under way, or −1.
    var exchange: Int32 = -1
    var parser = RequestParser(maximumHeadBytes: 16_384)
    /// Received and not yet used: part of a head, body bytes that wait, pipelined requests.
    var input = ByteBuffer()
    /// Not yet taken by the kernel.
    var output = ByteBuffer()
    /// Holds a part of the body that the upstream has not taken yet, or −1.
    var pipe: Int32 = -1
    /// Its last read filled the buffer.
    var isBulk = false
    /// Reading stopped because the other side is slower.
    var isPaused = false
    /// In the list of clients to go on with before the next wait.
    var isReady = false
    /// The last request was answered before all of it was read.
    var hasUnreadRequest = false
    /// Bytes may wait in the kernel although no event will say so again.
    var mayHaveMore = false
    /// A head has begun and is not complete.
    var isReceivingHead = false
    /// The peer will send no more.
    var hasEnded = false
    /// The deadline is that of a probe whether the peer is still there.
    var awaitsProbe = false
    /// What the deadline was before, and is again afterwards.
    var deadlineAfterProbe = Int64.max
    /// When the kernel last took some of `output`.
    var takenAt: Int64 = 0
    /// It was tried whether the peer is still there.
    var hasProbed = false
    /// To be closed once `output` is sent.
    var closesAfterFlush = false
    var requests = 0
    /// When the phase's patience ends, in nanoseconds of the monotonic clock.
    var deadline = Int64.max
    /// The tick the timer wheel holds for it, `max` for none.
    var scheduled = Int64.max
    /// Bytes still thrown away while lingering.
    var lingerBudget = 0

    /// Whether it is one request's half of an HTTP/2 connection.
    @inline(__always)
    var isStream: Bool { kind == .stream }

    /// Makes the place ready for a new connection, or for a new stream of one (`fd` −1).
    mutating func open(
        fd: Int32, kind: Kind, rules: ListenerRules, address: ClientAddress, maximumHeadBytes: Int
    ) {
        self.fd = fd
        isWatched = kind == .stream
        self.kind = kind
        self.rules = rules
        self.address = address
        peerBytes = address.bytes
        phase = .head
        connection = -1
        stream = 0
        isStreamEnded = false
        isAnswered = false
        sentAtCheck = 0
        isDirty = false
        isHandshakeOut = false
        waitingEvents = []
        isHandshakeAnswered = false
        exchange = -1
        parser = RequestParser(maximumHeadBytes: maximumHeadBytes)
        isBulk = false
        isPaused = false
        isReady = false
        hasUnreadRequest = false
        mayHaveMore = false
        isReceivingHead = false
        hasEnded = false
        hasProbed = false
        awaitsProbe = false
        closesAfterFlush = false
        requests = 0
        deadline = .max
        scheduled = .max
        lingerBudget = 0
    }

    /// Gives back the memory of a connection that ended.
    mutating func close() {
        fd = -1
        exchange = -1
        if handler != nil { handler = nil }
        engine = nil
        security = nil
        streams = nil
        input.release()
        output.release()
    }
}

/// Where a client connects from, with the texts that headers and logs want made once per connection.
struct ClientAddress {
    /// 16 bytes, IPv4 mapped; zeros for a Unix socket.
    var bytes: [UInt8] = []
    /// Without port or brackets; `unix` for a Unix socket.
    var text = AddressText()
    /// Whether the peer is in `trusted_proxies`.
    var isTrusted = false
    /// The client's own; 0 where it is not known.
    var port: UInt16 = 0
    /// The peer came through a Unix socket.
    var isUnix = false
}
