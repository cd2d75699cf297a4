internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
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

    var generation: UInt32 = 0
    var isAlive = false

    var kind = Kind.http1
    var phase = DownstreamPhase.head
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
