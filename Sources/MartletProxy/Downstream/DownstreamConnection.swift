internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletTLS

/// One connection of a client, or one stream of an HTTP/2 connection.
///
/// A stream has no descriptor: it takes the part of an HTTP/1 connection for one request, so that everything above the
/// codec is the same for both.
struct DownstreamConnection: ~Copyable, SlabElement {
    enum Kind: UInt8 {
        /// A connection that carries one request after the other.
        case http1
        /// A connection whose streams carry the requests.
        case http2
        /// One stream of such a connection.
        case stream
    }

    enum Phase: UInt8 {
        /// Waiting for the PROXY protocol header.
        case proxyHeader
        /// The TLS handshake is in progress.
        case handshake
        /// Waiting for a request head, or in the middle of one.
        case head
        /// The head is in `input` while its credential is verified.
        case authenticating
        /// A request is in progress: its body is received, or its response is sent.
        case exchange
        /// Answered and closed for writing; input is discarded for a moment, so that the response arrives.
        case lingering
        /// An HTTP/2 connection, which carries frames.
        case frames
    }

    var generation: UInt32 = 0
    var isAlive = false

    var fd: Int32 = -1
    /// Registered with the poller; also `true` where there is no socket, as for a stream.
    var isRegistered = false
    var kind = Kind.http1
    /// The listener it was accepted from.
    var listener: Int32 = -1
    var rules = ListenerRules()
    /// The TLS engine; `nil` in clear text, and while a thread runs a step of the handshake.
    var engine: TLSEngine?
    /// Makes the engine when the first bytes arrive; the listener may be gone by then.
    var tlsContext: TLSServerContext?
    /// A thread has the engine.
    var isHandshakeOffloaded = false
    /// Events of the socket that wait in the ``HandshakeQueue``.
    var queuedEvents: Readiness = []
    /// The first flight of the handshake was sent.
    var hasSentServerHello = false
    /// Of an HTTP/2 connection: its framing and streams.
    var streams: DownstreamHTTP2State?
    /// Of a stream: its connection, and its stream ID there.
    var connection: Int32 = -1
    /// The generation of that connection.
    var connectionGeneration: UInt32 = 0
    var streamID: Int32 = 0
    /// Of a stream: the whole request was received, though maybe not consumed.
    var isStreamEnded = false
    /// Of a stream: its response was handed over completely.
    var isResponseComplete = false
    /// Of a stream: response bytes that had been sent when its deadline was last checked.
    var sentAtCheck = 0
    /// Of an HTTP/2 connection: frames may wait to be written.
    var isDirty = false
    /// The listener's own handler, which responds before anything is routed.
    var handler: ListenerHandler?
    var address = DownstreamAddress()
    /// The socket's peer, as it was counted on accept; differs from `address` behind a PROXY protocol header.
    var peerBytes: [UInt8] = []
    /// How it was counted on accept.
    var admission = ConnectionLimit.Admission.counted
    var phase = Phase.head
    /// The exchange in progress, or −1.
    var exchange: Int32 = -1
    var parser = RequestParser(maximumHeadBytes: 16_384)
    /// Received and not yet consumed: part of a head, buffered body bytes, pipelined requests.
    var input = ByteBuffer()
    /// Not yet written to the socket.
    var output = ByteBuffer()
    /// Index of the pipe with a part of the body that the upstream has not accepted yet, or −1.
    var pipe: Int32 = -1
    /// Its last read filled the buffer.
    var isBulk = false
    /// Reading is paused because the other side is slower.
    var isPaused = false
    /// In the list of connections to resume before the next wait.
    var isReady = false
    /// The last request was answered before it was read completely.
    var hasUnreadRequest = false
    /// The kernel may have unread bytes although no further event will say so.
    var mayHaveUnread = false
    /// A head has begun and is incomplete.
    var isReceivingHead = false
    /// The peer has closed its sending side.
    var isReadClosed = false
    /// The deadline is that of a probe whether the peer is still connected.
    var isProbePending = false
    /// The deadline that is restored after the probe.
    var deadlineAfterProbe = Int64.max
    /// When the kernel last accepted some of `output`.
    var lastWriteAt: Int64 = 0
    /// A probe was sent for this request.
    var hasProbed = false
    /// Close once `output` is sent.
    var closesAfterFlush = false
    var requests = 0
    /// The deadline of the current phase, in nanoseconds of the monotonic clock.
    var deadline = Int64.max
    /// The tick the timer wheel holds for it, `max` for none.
    var scheduled = Int64.max
    /// Bytes that may still be discarded while lingering.
    var lingerBudget = 0

    /// Whether it is one stream of an HTTP/2 connection.
    @inline(__always)
    var isStream: Bool { kind == .stream }

    /// Initializes the slot for a new connection, or for a new stream of one (`fd` −1).
    mutating func open(
        fd: Int32, kind: Kind, rules: ListenerRules, address: DownstreamAddress, maximumHeadBytes: Int
    ) {
        self.rules = rules
        self.address = address
        peerBytes = address.bytes
        reset(fd: fd, kind: kind, maximumHeadBytes: maximumHeadBytes)
    }

    /// The same where the rules and the address are those of its last use: see ``wasStream(of:_:)``.
    mutating func reset(fd: Int32, kind: Kind, maximumHeadBytes: Int) {
        self.fd = fd
        isRegistered = kind == .stream
        self.kind = kind
        phase = .head
        connection = -1
        streamID = 0
        isStreamEnded = false
        isResponseComplete = false
        sentAtCheck = 0
        isDirty = false
        isHandshakeOffloaded = false
        queuedEvents = []
        hasSentServerHello = false
        exchange = -1
        parser = RequestParser(maximumHeadBytes: maximumHeadBytes)
        isBulk = false
        isPaused = false
        isReady = false
        hasUnreadRequest = false
        mayHaveUnread = false
        isReceivingHead = false
        isReadClosed = false
        hasProbed = false
        isProbePending = false
        closesAfterFlush = false
        requests = 0
        deadline = .max
        scheduled = .max
        lingerBudget = 0
    }

    /// Whether its last use was a stream of this connection.
    func wasStream(of connection: Int32, _ generation: UInt32) -> Bool {
        kind == .stream && self.connection == connection && connectionGeneration == generation
    }

    /// Frees the memory of a connection that ended.
    mutating func close() {
        fd = -1
        exchange = -1
        if handler != nil { handler = nil }
        if kind != .stream {
            engine = nil
            tlsContext = nil
            streams = nil
        }
        input.release()
        output.release()
    }
}

/// A client's address, with the texts for headers and logs made once per connection.
struct DownstreamAddress {
    /// 16 bytes, IPv4 mapped; zeros for a Unix socket.
    var bytes: [UInt8] = []
    /// Without port or brackets; `unix` for a Unix socket.
    var text = AddressText()
    /// Whether the peer is in `trusted_proxies`.
    var isTrusted = false
    /// The client's own port; 0 where it is unknown.
    var port: UInt16 = 0
    /// The peer connected through a Unix socket.
    var isUnix = false
}
