internal import MartletAuthenticator
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletResponder
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
        /// The head is in `input` while the request waits (``Suspension``).
        case waiting
        /// A request is in progress: its body is received, or its response is sent.
        case exchange
        /// Answered and closed for writing; input is discarded for a moment, so that the response arrives.
        case lingering
        /// An HTTP/2 connection, which carries frames.
        case frames
    }

    var generation: UInt32 = 0
    var isAlive = false

    var kind = Kind.http1
    var phase = Phase.head
    var transport = Transport()
    var handshake = DownstreamHandshake()
    /// Where it comes from, and what its listener says about it.
    var origin = DownstreamOrigin()
    /// Of an HTTP/2 connection: its framing and streams.
    var streams: DownstreamHTTP2State?
    /// Of a stream: its connection, and its state there.
    var stream = DownstreamStream()
    /// The exchange in progress.
    var exchange = Handle<Exchange>.none
    var reader = RequestReader()
    /// The pipe with a part of the body that the upstream has not accepted yet.
    var pipe = PipeHandle.none
    var timer = ConnectionTimer()
    var probe = PeerProbe()
    var ending = ConnectionEnding()
    /// Reading is paused because the other side is slower.
    var isPaused = false
    /// In the list of connections to resume before the next wait.
    var isReady = false
    /// Of an HTTP/2 connection: frames may wait to be written.
    var isDirty = false

    /// Whether it is one stream of an HTTP/2 connection.
    @inline(__always)
    var isStream: Bool { kind == .stream }

    /// Initializes the slot for a new connection, or for a new stream of one (`fd` −1).
    mutating func open(fd: Int32, kind: Kind, rules: ListenerRules, address: DownstreamAddress, maximumHeadBytes: Int) {
        origin.rules = rules
        origin.address = address
        origin.peerBytes = address.bytes
        reset(fd: fd, kind: kind, maximumHeadBytes: maximumHeadBytes)
    }

    /// The same where the rules and the address are those of its last use: see ``wasStream(of:)``.
    mutating func reset(fd: Int32, kind: Kind, maximumHeadBytes: Int) {
        self.kind = kind
        phase = .head
        transport.open(fd)
        transport.isSecure = kind != .stream && origin.rules.isSecure
        if kind != .stream { handshake = DownstreamHandshake() }
        stream = DownstreamStream()
        exchange = .none
        reader.reset(maximumHeadBytes: maximumHeadBytes)
        timer = ConnectionTimer()
        probe = PeerProbe()
        ending = ConnectionEnding()
        isPaused = false
        isReady = false
        isDirty = false
    }

    /// Whether its last use was a stream of this connection.
    func wasStream(of connection: Handle<DownstreamConnection>) -> Bool {
        kind == .stream && stream.connection == connection
    }

    /// Frees the memory of a connection that ended.
    mutating func close() {
        exchange = .none
        if origin.handler != nil { origin.handler = nil }
        if kind == .stream {
            transport.output.release()
        } else {
            transport.close()
            handshake.tlsContext = nil
            if handshake.clientCertificate != nil { handshake.clientCertificate = nil }
            streams = nil
        }
        reader.input.release()
    }
}

/// The TLS handshake of a downstream connection, as far as the engine does not know it.
struct DownstreamHandshake {
    /// Makes the engine when the first bytes arrive; the listener may be gone by then.
    var tlsContext: TLSServerContext?
    /// A thread has the engine.
    var isOffloaded = false
    /// Events of the socket that wait in the ``HandshakeQueue``.
    var queuedEvents: Readiness = []
    /// The first flight of the handshake was sent.
    var hasSentServerHello = false
    /// The certificate that the client sent, once a request has needed it.
    var clientCertificate: ClientCertificateBytes?
}

/// Where a downstream connection comes from, and what its listener says about it.
struct DownstreamOrigin {
    /// The listener it was accepted from.
    var listener: Int32 = -1
    var rules = ListenerRules()
    /// The listener's own handler, which responds before anything is routed.
    var handler: ListenerHandler?
    var address = DownstreamAddress()
    /// The socket's peer, as it was counted on accept; differs from `address` behind a PROXY protocol header.
    var peerBytes: [UInt8] = []
    /// How it was counted on accept.
    var admission = ConnectionLimit.Admission.counted
}

/// What a stream of an HTTP/2 connection has that a connection has not.
struct DownstreamStream {
    /// Its connection, and its stream ID there.
    var connection = Handle<DownstreamConnection>.none
    var id: Int32 = 0
    /// The whole request was received, though maybe not consumed.
    var isEnded = false
    /// Its response was handed over completely.
    var isResponseComplete = false
    /// Response bytes that had been sent when its deadline was last checked.
    var sentAtCheck = 0
}

/// The requests of a downstream connection as bytes.
struct RequestReader: ~Copyable {
    var parser = RequestParser(maximumHeadBytes: 16_384)
    /// Received and not yet consumed: part of a head, buffered body bytes, pipelined requests.
    var input = ByteBuffer()
    /// A head has begun and is incomplete.
    var isReceivingHead = false
    /// How many requests have begun.
    var requests = 0

    mutating func reset(maximumHeadBytes: Int) {
        parser = RequestParser(maximumHeadBytes: maximumHeadBytes)
        isReceivingHead = false
        requests = 0
    }
}

/// A client's address, with the texts for headers and logs made once per connection.
struct DownstreamAddress {
    /// 16 bytes, IPv4 mapped; zeros for a Unix socket.
    var bytes: [UInt8] = []
    /// Without port or brackets; `unix` for a Unix socket.
    var text = AddressText()
    /// Why the heads of its requests are read before they are routed; none for most.
    var marks: Marks = []
    /// The client's own port; 0 where it is unknown.
    var port: UInt16 = 0
    /// The peer connected through a Unix socket.
    var isUnix = false
    /// It was logged that its forwarding fields are ignored.
    var isReported = false

    /// What is read of the heads of its requests.
    struct Marks: OptionSet {
        let rawValue: UInt8

        /// What the peer says about the client, as it is in `trusted_proxies`.
        static let trusted = Marks(rawValue: 1)
        /// What access lines have of them.
        static let noted = Marks(rawValue: 2)
    }

    init(
        bytes: [UInt8] = [], text: AddressText = AddressText(), isTrusted: Bool = false, isNoted: Bool = false,
        port: UInt16 = 0, isUnix: Bool = false
    ) {
        self.bytes = bytes
        self.text = text
        marks = isTrusted ? .trusted : []
        if isNoted { marks.insert(.noted) }
        self.port = port
        self.isUnix = isUnix
    }

    /// Whether the peer is in `trusted_proxies`.
    @inline(__always)
    var isTrusted: Bool {
        get { marks.contains(.trusted) }
        set { if newValue { marks.insert(.trusted) } else { marks.remove(.trusted) } }
    }

    /// Whether access lines have something of the heads of its requests.
    var isNoted: Bool {
        get { marks.contains(.noted) }
        set { if newValue { marks.insert(.noted) } else { marks.remove(.noted) } }
    }
}
