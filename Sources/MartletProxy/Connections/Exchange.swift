internal import MartletCore
internal import MartletHTTP

/// One request and its answer, whatever connection carries them.
struct Exchange: ~Copyable, SlabElement {
    /// Who answers.
    enum Responder: UInt8 {
        /// Nobody yet.
        case none
        /// An upstream's link.
        case upstream
        /// A handler in this process.
        case local
    }

    var generation: UInt32 = 0
    var isAlive = false

    var client: Int32 = -1
    /// Its client is a stream of an HTTP/2 connection.
    var isStream = false
    /// Its caller speaks gRPC, and understands errors of that kind only.
    var isGRPC = false
    /// The client said that it reads trailers (`TE: trailers`).
    var acceptsTrailers = false
    /// The answer's last byte has been told to the stream.
    var hasEndedStream = false
    var link: Int32 = -1
    /// What it upgrades to, or −1.
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
    /// Lower-case names that the request announced in `Trailer`, comma-separated.
    var announcedTrailers = ByteBuffer()
    /// What decides on its fields, for its trailers, which come later: the place of its route and the rules.
    var route: Int32 = -1
    var fieldRules: RequestRewriter.Rules = []
    /// The configuration that `route` is of, where a reload has come in between.
    private(set) var formerSnapshot: Snapshot?
    private(set) var hasFormerSnapshot = false
    /// Lines that follow the request's body.
    var requestTrailers = ByteBuffer()
    /// Lines that follow the answer's body.
    var answerTrailers = ByteBuffer()
    /// The head that the upstream gets; kept until an answer comes, so that the request can go elsewhere.
    var head = ByteBuffer()
    /// How much of `head` the kernel has taken.
    var headSent = 0
    /// Where the `Host` line begins and ends in `head`.
    var hostLine: (start: Int, end: Int) = (0, 0)
    /// What a local handler gets, or what no link could send yet.
    var body = ByteBuffer()
    /// Lines that came behind a stream's body, as they came.
    var streamTrailers = ByteBuffer()
    /// When bytes of the body came last.
    var receivedAt: Int64 = 0
    var windowStart: Int64 = 0
    var windowBytes = 0

    // Where it goes.
    var upstream: Int32 = -1
    var endpoint: Int32 = -1
    var attempts = 0
    /// How often the credential was given to a provider.
    var judgements = 0
    /// When it was last.
    var askedAt: Int64 = 0
    /// A refusal offers Basic too.
    var offersBasic = false
    var hash: UInt64 = 0
    /// How long the answer's head, and silence afterwards, are waited for, in nanoseconds.
    var answerPatience: Int64 = 0
    var idlePatience: Int64 = 0
    /// A 100 (Continue) was sent, whether the upstream's or ours.
    var hasContinued = false
    var task: Task<Void, Never>?
    var handler: LocalHandler?

    // The answer.
    var status = 0
    var hasResponseStarted = false
    var isResponseChunked = false
    /// The connection is closed after the answer.
    var closesClient = false

    /// What revocations call its credential (0: nothing), until when that is good, and when the exchange ends with it.
    var credentialNumber: UInt64 = 0
    var credentialEnd = Int64.max
    var cutsAt = Int64.max
    /// How long after its credential it ends.
    var grace: Int64 = 0
    var isRevoked = false
    /// Where its token stands among the grants, or −1.
    var grant: Int32 = -1
    /// It is a long one, whose token is kept.
    var holdsToken = false

    // For the log.
    /// The request's id is ours, or a trusted proxy's.
    var texts = RequestTexts()
    var started: Int64 = 0
    /// The client behind trusted proxies; empty where the peer is the client.
    var forwardedClient: [UInt8] = []
    /// The same as 16 bytes.
    var forwardedNetwork: [UInt8] = []
    /// Index into the counters' routes; 0 is "no route".
    var routeSlot: Int32 = 0
    /// Index into the worker's interned reasons; 0 is "ok".
    var reason: Int32 = 0
    /// Index into the snapshot's providers, or −1.
    var provider: Int32 = -1
    var bytesIn = 0
    var bytesOut = 0

    @inline(__always)
    mutating func begin(client: Int32, now: Int64) {
        self.client = client
        isStream = false
        isGRPC = false
        acceptsTrailers = false
        hasEndedStream = false
        link = -1
        tunnel = -1
        credentialNumber = 0
        credentialEnd = .max
        cutsAt = .max
        grant = -1
        holdsToken = false
        responder = .none
        isRequestComplete = false
        bodyLimit = .max
        bodyBytes = 0
        remaining = 0
        announcedTrailers.removeAll()
        requestTrailers.removeAll()
        streamTrailers.removeAll()
        answerTrailers.removeAll()
        head.removeAll()
        headSent = 0
        upstream = -1
        endpoint = -1
        attempts = 0
        judgements = 0
        askedAt = 0
        offersBasic = false
        hash = 0
        hasContinued = false
        status = 0
        hasResponseStarted = false
        isResponseChunked = false
        closesClient = false
        started = now
        routeSlot = 0
        reason = 0
        provider = -1
        bytesIn = 0
        bytesOut = 0
        windowStart = now
        windowBytes = 0
    }

    /// Lets go of what only some exchanges hold.
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

    /// Has the exchange go on by the rules of a configuration that another one replaces.
    mutating func keep(former snapshot: Snapshot) {
        guard !hasFormerSnapshot else { return }
        formerSnapshot = snapshot
        hasFormerSnapshot = true
    }

    // Elsewhere than in `end`: releasing it is nothing that every request does.
    @inline(never)
    private mutating func dropFormerSnapshot() {
        formerSnapshot = nil
        hasFormerSnapshot = false
    }

    /// Whether the request may be sent a second time after its bytes went out: nothing is lost or done twice.
    @inline(__always)
    var isRepeatable: Bool { framing.isEmpty && method.isIdempotent }
}
