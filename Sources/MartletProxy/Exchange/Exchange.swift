internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

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
        /// Its route, when the request is complete.
        case route
        /// Not decided yet: the message of a check by gRPC comes first.
        case call

        /// Whether the body is kept until it is complete.
        @inline(__always)
        var holdsBody: Bool { self == .local || self == .call }
    }

    var generation: UInt32 = 0
    var isAlive = false

    var downstream = Handle<DownstreamConnection>.none
    /// The client uses an HTTP/2 stream.
    var isStream = false
    var upstream = Handle<UpstreamConnection>.none
    /// Its upgrade, if it has requested one.
    var tunnel = Handle<Tunnel>.none
    var responder = Responder.none
    var suspension = Suspension.none

    var request = RequestProperties()
    var body = RequestBody()
    var pace = BodyPace()
    /// What its credential says about the body, and its copy for another upstream.
    var bodyWatch = BodyWatch()
    var trailers = RequestTrailers()
    /// The body for a local handler, or what was reclaimed from a failed upstream connection.
    var heldBody = HeldBody()
    var forwarding = Forwarding()
    var local = LocalExchange()
    var response = ResponseState()
    var credential = CredentialState()
    /// How it ends when its credential has.
    var termination = CredentialTermination()
    /// What the access log, the metrics and its route's limits count of it.
    var record = ExchangeRecord()

    @inline(__always)
    mutating func begin(downstream: Handle<DownstreamConnection>, now: Int64) {
        self.downstream = downstream
        isStream = false
        upstream = .none
        tunnel = .none
        responder = .none
        request.begin()
        body.begin()
        pace.begin(now: now)
        trailers.begin()
        forwarding.begin()
        response.begin()
        credential = CredentialState()
        termination = CredentialTermination()
        record.begin(now: now)
    }

    /// Releases what only some exchanges hold.
    @inline(__always)
    mutating func end() {
        if responder == .local || responder == .route { dropLocal() }
        if !suspension.isNone { dropSuspension() }
        record.end()
        forwarding.end()
        forwarding.headerRules.end()
        response.rules.end()
        heldBody.release()
        bodyWatch.end()
    }

    // Not in `end`: few exchanges have one.
    @inline(never)
    private mutating func dropLocal() { local = LocalExchange() }

    /// Whether the request may be sent again after its bytes went out: no body is lost, and the method is idempotent.
    @inline(__always)
    var isRepeatable: Bool {
        request.method.isIdempotent && (body.framing.isEmpty || body.count == 0 && !body.isComplete)
    }
}

extension Handle where Element: ~Copyable {
    /// The exchange that the authenticator was given.
    @inline(__always)
    init(_ id: ExchangeID) where Element == Exchange { raw = id.raw }
}

extension ExchangeID {
    /// An exchange as the authenticator gets it.
    @inline(__always)
    init(_ exchange: Handle<Exchange>) { self.init(raw: exchange.raw) }
}
