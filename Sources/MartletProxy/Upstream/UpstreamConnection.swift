internal import MartletCore
internal import MartletHTTP
internal import MartletTLS

/// One connection to an upstream endpoint, or one stream of an HTTP/2 connection to it.
struct UpstreamConnection: ~Copyable, SlabElement {
    enum Kind: UInt8 {
        /// A connection that carries one request after the other.
        case http1
        /// A connection whose streams carry the requests.
        case http2
        /// One stream of such a connection.
        case stream
    }

    enum Phase: UInt8 {
        case connecting
        /// Connected; the TLS handshake is in progress.
        case handshake
        case idle, awaitingHead, body
        /// An HTTP/2 connection, which carries frames.
        case frames
    }

    var generation: UInt32 = 0
    var isAlive = false

    var fd: Int32 = -1
    var kind = Kind.http1
    /// Encrypts and decrypts; `nil` in clear text.
    var engine: TLSEngine?
    var isSecure = false
    /// Of an HTTP/2 connection: its framing and streams.
    var streams: UpstreamHTTP2State?
    /// Of a stream: its connection, and its stream ID there (0 before it is submitted).
    var connection: Int32 = -1
    var streamID: Int32 = 0
    /// Of a stream: its response consists of a head alone.
    var endsWithHead = false
    /// Of a stream: the response's last frame was received.
    var isStreamEnded = false
    /// Of a stream: it was closed by the peer or by the framing.
    var isStreamClosed = false
    /// Of a stream: the end of the request was submitted.
    var hasEndedRequest = false
    /// Of a stream: request bytes that had been sent when its deadline was last checked.
    var sentAtCheck = 0
    /// Of an HTTP/2 connection: frames may wait to be written.
    var isDirty = false
    /// Bytes for the socket, where that is not `output` itself: ciphertext, frames, a PROXY protocol header.
    var transportOutput = ByteBuffer()
    /// Index into the directory's endpoints.
    var endpoint: Int32 = -1
    /// The exchange it carries, or −1.
    var exchange: Int32 = -1
    var phase = Phase.connecting
    var parser = ResponseParser(maximumHeadBytes: 65_536)
    /// Received and not yet consumed.
    var input = ByteBuffer()
    /// Not yet sent, in clear text.
    var output = ByteBuffer()
    /// Index of the pipe with a part of the response that the client has not accepted yet, or −1.
    var pipe: Int32 = -1
    /// Its last read filled the buffer.
    var isBulk = false
    var isPaused = false
    var isReady = false
    /// Exchanges it carried before this one.
    var served = 0
    /// Bytes of the current response were received.
    var hasResponded = false
    var framing = BodyFraming.none
    var remaining = 0
    var decoder = ChunkedDecoder()
    /// The upstream will keep the connection open.
    var keepsAlive = false
    /// The peer has closed its sending side.
    var isReadClosed = false
    var interimResponses = 0
    var idleTimeout: Int64 = 60_000_000_000
    var deadline = Int64.max
    var scheduled = Int64.max

    mutating func open(fd: Int32, kind: Kind, endpoint: Int32, connected: Bool) {
        self.fd = fd
        self.kind = kind
        self.endpoint = endpoint
        isSecure = false
        connection = -1
        streamID = 0
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
        hasResponded = false
        keepsAlive = false
        isReadClosed = false
        interimResponses = 0
        deadline = .max
        scheduled = .max
    }

    /// Whether it can carry requests now; inlined, as a function that reads an element gets a copy of it.
    @inline(__always)
    var isUp: Bool { phase != .connecting && phase != .handshake }

    /// Prepares for the response of the next request.
    @inline(__always)
    mutating func expectResponse() {
        phase = .awaitingHead
        // The last response may have ended while its client was slow.
        isPaused = false
        hasResponded = false
        framing = .none
        remaining = 0
        interimResponses = 0
        parser.reset()
    }

    mutating func close() {
        fd = -1
        exchange = -1
        engine = nil
        streams = nil
        transportOutput.release()
        input.release()
        output.release()
    }
}
