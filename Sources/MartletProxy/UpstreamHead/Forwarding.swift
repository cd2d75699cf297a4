internal import MartletCore
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
    /// The head for the upstream; kept until a response arrives, so that the request can be retried.
    var head = ByteBuffer()
    /// How much of `head` was sent.
    var headSent = 0
    /// Offsets of the `Host` line in `head` that gets the endpoint's name; zeros where another one is written.
    var hostLine: (start: Int, end: Int) = (0, 0)
    /// Timeouts for the response's head, and for silence afterwards, in nanoseconds.
    var responseTimeout: Int64 = 0
    var idleTimeout: Int64 = 0
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
        head.removeAll()
        headSent = 0
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

/// What the upstream and its endpoint add to a head.
extension Forwarding {
    /// Sets the hash for balancing, of all values of a header (FNV-1a); 0 without the header, or if it is empty.
    @inline(never)
    mutating func setHash(of header: String, in head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) {
        var hash = Self.basis
        for index in 0..<head.fields.count {
            guard unsafe bytes[head.fields[index].name].elementsEqual(header.utf8, by: { $0 | 0x20 == $1 | 0x20 })
            else { continue }
            hash = unsafe bytes[head.fields[index].value].reduce(hash) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        }
        self.hash = hash == Self.basis ? 0 : hash
    }

    /// The hash of no bytes.
    private static var basis: UInt64 { 0xCBF2_9CE4_8422_2325 }

    /// The same hash of the values of a header, in their order.
    static func hash(ofValues values: [[UInt8]]) -> UInt64 {
        let hash = values.joined().reduce(basis) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return hash == basis ? 0 : hash
    }

    /// Sets the hash for balancing, of a client's address, as a split of a route counts it; 0 without one.
    @inline(never)
    mutating func setHash(ofAddress bytes: [UInt8]) { hash = RouteSplit.key(ofAddress: bytes) }

    /// Fills in `Host` with the name of the endpoint, unless the head has the client's line: a reload between two
    /// attempts may have changed which one the upstream gets.
    ///
    /// - Parameter scratch: is overwritten.
    mutating func fillInHost(_ name: [UInt8], scratch: inout ByteBuffer) {
        let line = hostLine
        guard line.end > 0 else { return }
        scratch.removeAll()
        let old = unsafe head.bytes
        unsafe scratch.append(unsafe UnsafeBufferPointer(rebasing: old[..<line.start]))
        scratch.append("Host: ")
        scratch.append(name)
        scratch.append("\r\n")
        let end = scratch.count
        unsafe scratch.append(unsafe UnsafeBufferPointer(rebasing: old[line.end...]))
        hostLine = (line.start, end)
        head.removeAll()
        unsafe head.append(unsafe scratch.bytes)
    }
}
