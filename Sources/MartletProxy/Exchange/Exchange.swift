internal import MartletCore
internal import MartletHTTP

/// One request and its response, independent of the connections that carry them.
struct Exchange: ~Copyable, SlabElement {
    /// What produces the response.
    enum Responder: UInt8 {
        /// Not decided yet.
        case none
        /// An upstream connection.
        case upstream
        /// A handler in this process.
        case local
    }

    var generation: UInt32 = 0
    var isAlive = false

    var downstream: Int32 = -1
    /// The client uses an HTTP/2 stream.
    var isStream = false
    /// The caller uses gRPC, and gets errors as gRPC status.
    var isGRPC = false
    /// The client said that it reads trailers (`TE: trailers`).
    var acceptsTrailers = false
    /// The end of the response was submitted to the stream.
    var hasEndedStream = false
    var upstream: Int32 = -1
    /// Index of its tunnel, or −1.
    var tunnel: Int32 = -1
    var responder = Responder.none

    // The request.
    var method = Method.get
    var isHTTP10 = false
    var keepsAlive = true
    var expectsContinue = false
    var framing = BodyFraming.none
    var remaining = 0
    var decoder = ChunkedDecoder()
    var isRequestComplete = false
    var bodyLimit = Int.max
    var bodyBytes = 0
    /// Lower-case names announced in `Trailer`, comma-separated.
    var announcedTrailers = ByteBuffer()
    /// Decides on the trailers, which come later: index of the route, and the header rules.
    var route: Int32 = -1
    var fieldRules: RequestRewriter.Rules = []
    /// The configuration of `route`, after a reload.
    private(set) var formerSnapshot: Snapshot?
    private(set) var hasFormerSnapshot = false
    /// Trailer lines of the request.
    var requestTrailers = ByteBuffer()
    /// Trailer lines of the response.
    var responseTrailers = ByteBuffer()
    /// The head for the upstream; kept until a response arrives, so that the request can be retried.
    var head = ByteBuffer()
    /// How much of `head` was sent.
    var headSent = 0
    /// Offsets of the `Host` line in `head`.
    var hostLine: (start: Int, end: Int) = (0, 0)
    /// The body for a local handler, or what was reclaimed from a failed upstream connection.
    var body = ByteBuffer()
    /// Trailer lines of a stream, as received.
    var streamTrailers = ByteBuffer()
    /// When body bytes were last received.
    var receivedAt: Int64 = 0
    var windowStart: Int64 = 0
    var windowBytes = 0

    // Where it is sent: indices of the upstream and the endpoint.
    var cluster: Int32 = -1
    var endpoint: Int32 = -1
    var attempts = 0
    var hash: UInt64 = 0
    /// Timeouts for the response's head, and for silence afterwards, in nanoseconds.
    var responseTimeout: Int64 = 0
    var idleTimeout: Int64 = 0
    /// A 100 (Continue) was sent, by the upstream or by the gateway.
    var hasContinued = false
    var task: Task<Void, Never>?
    var handler: LocalHandler?

    // The response.
    var status = 0
    var hasResponseStarted = false
    var isResponseChunked = false
    /// Close the connection after the response.
    var closesDownstream = false

    var credential = CredentialState()
    /// When the exchange is terminated because its credential has ended.
    var terminateAt = Int64.max
    var isRevoked = false

    // For the log.
    /// Texts of the request; its ID is the gateway's or a trusted proxy's.
    var texts = RequestTexts()
    var started: Int64 = 0
    /// The client behind trusted proxies; empty where the peer is the client.
    var forwardedClient: [UInt8] = []
    /// The same address as 16 bytes.
    var forwardedNetwork: [UInt8] = []
    /// Index into the counters' routes; 0 is "no route".
    var routeSlot: Int32 = 0
    /// Index into the counters' reasons; 0 is "ok".
    var reason: Int32 = 0
    var bytesIn = 0
    var bytesOut = 0

    @inline(__always)
    mutating func begin(downstream: Int32, now: Int64) {
        self.downstream = downstream
        isStream = false
        isGRPC = false
        acceptsTrailers = false
        hasEndedStream = false
        upstream = -1
        tunnel = -1
        credential = CredentialState()
        terminateAt = .max
        responder = .none
        isRequestComplete = false
        bodyLimit = .max
        bodyBytes = 0
        remaining = 0
        announcedTrailers.removeAll()
        requestTrailers.removeAll()
        streamTrailers.removeAll()
        responseTrailers.removeAll()
        head.removeAll()
        headSent = 0
        cluster = -1
        endpoint = -1
        attempts = 0
        hash = 0
        hasContinued = false
        status = 0
        hasResponseStarted = false
        isResponseChunked = false
        closesDownstream = false
        started = now
        routeSlot = 0
        reason = 0
        bytesIn = 0
        bytesOut = 0
        windowStart = now
        windowBytes = 0
    }

    /// Releases what only some exchanges hold.
    @inline(__always)
    mutating func end() {
        if responder == .local {
            task = nil
            handler = nil
        }
        if !forwardedClient.isEmpty || !forwardedNetwork.isEmpty {
            forwardedClient = []
            forwardedNetwork = []
        }
        if hasFormerSnapshot { dropFormerSnapshot() }
        body.release()
    }

    /// Retains the configuration that the exchange started with.
    mutating func retain(former snapshot: Snapshot) {
        guard !hasFormerSnapshot else { return }
        formerSnapshot = snapshot
        hasFormerSnapshot = true
    }

    // Not in `end`: few exchanges release one.
    @inline(never)
    private mutating func dropFormerSnapshot() {
        formerSnapshot = nil
        hasFormerSnapshot = false
    }

    /// Whether the request may be sent again after its bytes went out: no body is lost, and the method is idempotent.
    @inline(__always)
    var isRepeatable: Bool { framing.isEmpty && method.isIdempotent }
}
