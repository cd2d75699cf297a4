internal import MartletCore
internal import MartletHTTP

/// One connection of a client (downstream).
struct Client: ~Copyable, SlabElement {
    enum Phase: UInt8 {
        /// Waiting for a request head or in the middle of one.
        case head
        /// The head stands in `input` while its credential is judged.
        case authenticating
        /// A request is under way: its body comes, or its answer goes.
        case exchange
        /// Answered and closed for writing; what still comes is thrown away for a moment, so that the answer arrives.
        case lingering
    }

    var generation: UInt32 = 0
    var isAlive = false

    var fd: Int32 = -1
    /// Answers everything on this connection, where its listener is not the gateway's.
    var handler: LocalHandler?
    var address = ClientAddress()
    /// How it was counted when it came.
    var admission = ConnectionLimit.Admission.counted
    var phase = Phase.head
    /// The exchange under way, or −1.
    var exchange: Int32 = -1
    var parser = RequestParser(maximumHeadBytes: 16_384)
    /// Received and not yet used: part of a head, body bytes that wait, pipelined requests.
    var input = ByteBuffer()
    /// Not yet taken by the kernel.
    var output = ByteBuffer()
    /// Reading stopped because the other side is slower.
    var isPaused = false
    /// In the list of clients to go on with before the next wait.
    var isReady = false
    /// The last request was answered before all of it was read.
    var hasUnreadRequest = false
    /// Bytes may wait in the kernel although no event will say so again.
    var mayHaveMore = false
    /// A head has begun and is not complete.
    var isReceivingHead = false
    /// The peer will send no more.
    var hasEnded = false
    /// The deadline is that of a probe whether the peer is still there.
    var awaitsProbe = false
    /// What the deadline was before, and is again afterwards.
    var deadlineAfterProbe = Int64.max
    /// When the kernel last took some of `output`.
    var takenAt: Int64 = 0
    /// It was tried whether the peer is still there.
    var hasProbed = false
    /// To be closed once `output` is sent.
    var closesAfterFlush = false
    var requests = 0
    /// When the phase's patience ends, in nanoseconds of the monotonic clock.
    var deadline = Int64.max
    /// The tick the timer wheel holds for it, `max` for none.
    var scheduled = Int64.max
    /// Bytes still thrown away while lingering.
    var lingerBudget = 0

    /// Makes the place ready for a new connection.
    mutating func open(fd: Int32, handler: LocalHandler?, address: ClientAddress, maximumHeadBytes: Int) {
        self.fd = fd
        self.handler = handler
        self.address = address
        phase = .head
        exchange = -1
        parser = RequestParser(maximumHeadBytes: maximumHeadBytes)
        isPaused = false
        isReady = false
        hasUnreadRequest = false
        mayHaveMore = false
        isReceivingHead = false
        hasEnded = false
        hasProbed = false
        awaitsProbe = false
        closesAfterFlush = false
        requests = 0
        deadline = .max
        scheduled = .max
        lingerBudget = 0
    }

    /// Gives back the memory of a connection that ended.
    mutating func close() {
        fd = -1
        exchange = -1
        handler = nil
        input.release()
        output.release()
    }
}

/// Where a client connects from, with the texts that headers and logs want made once per connection.
struct ClientAddress {
    /// 16 bytes, IPv4 mapped; zeros for a Unix socket.
    var bytes: [UInt8] = []
    /// Without port or brackets; `unix` for a Unix socket.
    var text: [UInt8] = []
    /// Whether the peer is in `trusted_proxies`.
    var isTrusted = false
}
