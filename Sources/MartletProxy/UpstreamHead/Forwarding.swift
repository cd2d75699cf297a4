internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletProvider
internal import MartletRouter
internal import MartletTraffic

/// The request as it is sent to an endpoint.
struct Forwarding: ~Copyable {
    var cluster = ClusterIndex.none
    var endpoint = EndpointIndex.none
    /// How often it was sent to an endpoint.
    var attempts = 0
    /// For balancing by hash.
    var hash: UInt64 = 0
    var head = UpstreamHead()
    /// The rules that it was written with, which are those of its trailers, too.
    var headerRules = ExchangeHeaderRules()
    /// Timeouts for the response's head, and for silence afterwards, in nanoseconds.
    var responseTimeout: Int64 = 0
    var idleTimeout: Int64 = 0
    /// When the last part of it was sent to the endpoint.
    var sentAt: Int64 = 0
    /// It waits before it is sent to an endpoint (``DelayedRequests``).
    var isWaiting = false
    /// Where it is counted as under way, if its upstream counts requests.
    private var underWay = DividedEntry()
    /// Where it is counted as carried by a connection.
    private var carried = DividedEntry()
    /// Where it is counted as waiting for a connection.
    private var pending = DividedEntry()
    /// Until when it waits for a connection at most.
    private(set) var pendingUntil: Int64 = 0

    @inline(__always)
    mutating func begin() {
        cluster = .none
        endpoint = .none
        attempts = 0
        hash = 0
        head.begin()
        isWaiting = false
    }

    /// Counts the request as under way until it ends.
    /// - Returns: whether there was room.
    mutating func enter(_ breaker: Breaker, for network: ClientNetwork?) -> Bool {
        underWay.enter(breaker.requests, maximum: breaker.maximumRequests, for: network)
    }

    /// Whether it is counted as carried by a connection.
    var isCarried: Bool { carried.isEntered }

    /// Counts it as carried by a connection until it has none any more.
    /// - Parameter maximum: as much as all connections of the upstream carry.
    /// - Returns: whether there was room.
    mutating func carry(_ breaker: Breaker, maximum: Int, for network: ClientNetwork?) -> Bool {
        carried.enter(breaker.carried, maximum: maximum, for: network)
    }

    /// It has no connection any more, or is not to have one now.
    @inline(__always)
    mutating func stopCarrying() { carried.leave() }

    /// Whether it is counted as waiting for a connection.
    var isPending: Bool { pending.isEntered }

    /// Counts it as waiting for a connection until it has one or ends.
    /// - Returns: whether there was room.
    mutating func pend(_ breaker: Breaker, for network: ClientNetwork?, at now: Int64) -> Bool {
        guard pending.enter(breaker.pending, maximum: breaker.maximumPending, for: network) else { return false }
        pendingUntil = now &+ breaker.queueTimeout
        return true
    }

    /// It has a connection.
    @inline(__always)
    mutating func stopPending() { pending.leave() }

    /// The exchange ends. What waits for a connection is under way.
    @inline(__always)
    mutating func end() {
        guard underWay.isEntered else { return }
        pending.leave()
        carried.leave()
        underWay.leave()
    }
}

/// What it is balanced by.
extension Forwarding {
    /// Sets the hash for balancing, of all values of a header.
    @inline(never)
    mutating func setHash(of header: String, in head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) {
        var hash = HeaderHash()
        for index in 0..<head.fields.count {
            guard unsafe bytes[head.fields[index].name].elementsEqual(header.utf8, by: { $0 | 0x20 == $1 | 0x20 })
            else { continue }
            unsafe hash.add(bytes[head.fields[index].value].span)
        }
        self.hash = hash.value
    }

    /// Sets the hash for balancing, of a client's address, as a split of a route counts it; 0 without one.
    @inline(never)
    mutating func setHash(ofAddress bytes: [UInt8]) { hash = RouteSplit.key(ofAddress: bytes) }
}
