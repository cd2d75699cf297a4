internal import MartletCore
internal import MartletHTTP
internal import MartletTLS

/// One connection to an upstream endpoint, or one stream of an HTTP/2 connection to it.
struct Link: ~Copyable, SlabElement {
    enum Kind: UInt8 {
        /// A connection that carries one request after the other.
        case http1
        /// A connection whose streams carry the requests.
        case http2
        /// One of those streams.
        case stream
    }

    enum Phase: UInt8 {
        case connecting
        /// Connected; the TLS handshake is under way.
        case handshake
        case idle, awaitingHead, body
        /// Frames of an HTTP/2 connection come and go.
        case frames
    }

    var generation: UInt32 = 0
    var isAlive = false

    var fd: Int32 = -1
    var kind = Kind.http1
    /// Encrypts and decrypts; `nil` in clear text.
    var engine: TLSEngine?
    var isSecure = false
    /// Of an HTTP/2 connection.
    var streams: LinkStreams?
    /// Of a stream: its connection, and its number there (0 before it has one).
    var connection: Int32 = -1
    var stream: Int32 = 0
    /// Of a stream: its answer is a head alone.
    var endsWithHead = false
    /// Of a stream: the answer's last frame has come.
    var isStreamEnded = false
    /// Of a stream: the peer, or the framing, has closed it.
    var isStreamClosed = false
    /// Of a stream: the request's last frame was handed over.
    var hasEndedRequest = false
    /// Of a stream: bytes of its request that had gone out when its deadline was looked at.
    var sentAtCheck = 0
    /// Of an HTTP/2 connection: frames may wait to be written.
    var isDirty = false
    /// Ready for the kernel and not yet taken by it, where that is not `output` itself.
    var wire = ByteBuffer()
    /// Index into the worker's endpoints.
    var endpoint: Int32 = -1
    /// The exchange it carries, or −1.
    var exchange: Int32 = -1
    var phase = Phase.connecting
    var parser = ResponseParser(maximumHeadBytes: 65_536)
    /// Received and not yet used.
    var input = ByteBuffer()
    /// Not yet taken by the kernel.
    var output = ByteBuffer()
    /// Holds a part of the answer that the client has not taken yet, or −1.
    var pipe: Int32 = -1
    /// Its last read filled the buffer.
    var isBulk = false
    var isPaused = false
    var isReady = false
    /// Exchanges it carried before this one.
    var served = 0
    /// Bytes of the current answer were seen.
    var hasAnswered = false
    var framing = BodyFraming.none
    var remaining = 0
    var decoder = ChunkedDecoder()
    /// The upstream will keep the connection open.
    var keepsAlive = false
    /// The peer will send no more.
    var hasEnded = false
    var interimAnswers = 0
    var idlePatience: Int64 = 60_000_000_000
    var deadline = Int64.max
    var scheduled = Int64.max

    mutating func open(fd: Int32, kind: Kind, endpoint: Int32, connected: Bool) {
        self.fd = fd
        self.kind = kind
        self.endpoint = endpoint
        isSecure = false
        connection = -1
        stream = 0
        endsWithHead = false
        isStreamEnded = false
        isStreamClosed = false
        hasEndedRequest = false
        sentAtCheck = 0
        isDirty = false
        exchange = -1
        phase = connected ? .idle : .connecting
        isBulk = false
        isPaused = false
        isReady = false
        served = 0
        hasAnswered = false
        keepsAlive = false
        hasEnded = false
        interimAnswers = 0
        deadline = .max
        scheduled = .max
    }

    /// Whether requests can go over it now; inlined, for a function that only looks at an element is handed a copy of it.
    @inline(__always)
    var isUp: Bool { phase != .connecting && phase != .handshake }

    /// Gets ready to read the answer of the next request.
    @inline(__always)
    mutating func expectAnswer() {
        phase = .awaitingHead
        // The last answer may have ended while its client was slow.
        isPaused = false
        hasAnswered = false
        framing = .none
        remaining = 0
        interimAnswers = 0
        parser.reset()
    }

    mutating func close() {
        fd = -1
        exchange = -1
        engine = nil
        streams = nil
        wire.release()
        input.release()
        output.release()
    }
}
