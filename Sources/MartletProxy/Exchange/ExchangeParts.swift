internal import MartletCore
internal import MartletHTTP
internal import MartletResponder

/// What a request's head says about the exchange.
struct RequestProperties {
    var method = Method.get
    var isHTTP10 = false
    var keepsAlive = true
    var expectsContinue = false
    /// A 100 (Continue) was sent, by the upstream or by the gateway.
    var hasContinued = false
    /// The caller uses gRPC, and gets errors as gRPC status.
    var isGRPC = false
    /// The client said that it reads trailers (`TE: trailers`).
    var acceptsTrailers = false

    /// The head sets the rest.
    @inline(__always)
    mutating func begin() {
        hasContinued = false
        isGRPC = false
        acceptsTrailers = false
    }
}

/// The request as it is sent to an endpoint.
struct Forwarding: ~Copyable {
    var cluster = ClusterIndex.none
    var endpoint = EndpointIndex.none
    /// How often it was sent to an endpoint.
    var attempts = 0
    /// For balancing by hash.
    var hash: UInt64 = 0
    /// The head for the upstream; kept until a response arrives, so that the request can be retried.
    var head = ByteBuffer()
    /// How much of `head` was sent.
    var headSent = 0
    /// Offsets of the `Host` line in `head`.
    var hostLine: (start: Int, end: Int) = (0, 0)
    /// Timeouts for the response's head, and for silence afterwards, in nanoseconds.
    var responseTimeout: Int64 = 0
    var idleTimeout: Int64 = 0

    @inline(__always)
    mutating func begin() {
        cluster = .none
        endpoint = .none
        attempts = 0
        hash = 0
        head.removeAll()
        headSent = 0
    }
}

/// A request that a handler in this process responds to.
struct LocalExchange {
    var task: Task<Void, Never>?
    var handler: LocalHandler?
}

/// What the access log and the metrics say about an exchange.
struct ExchangeRecord: ~Copyable {
    /// Texts of the request; its ID is the gateway's or a trusted proxy's.
    var texts = RequestTexts()
    var started: Int64 = 0
    /// The client behind trusted proxies; empty where the peer is the client.
    var forwardedClient: [UInt8] = []
    /// The same address as 16 bytes.
    var forwardedNetwork: [UInt8] = []
    /// Its route's slot in the counters.
    var routeSlot = RouteSlot.noRoute
    /// Index into the counters' reasons; 0 is "ok".
    var reason: Int32 = 0
    var bytesIn = 0
    var bytesOut = 0

    @inline(__always)
    mutating func begin(now: Int64) {
        started = now
        routeSlot = .noRoute
        reason = 0
        bytesIn = 0
        bytesOut = 0
    }

    @inline(__always)
    mutating func end() {
        guard !forwardedClient.isEmpty || !forwardedNetwork.isEmpty else { return }
        forwardedClient = []
        forwardedNetwork = []
    }
}
