/// A probe whether a half-closed peer is still connected.
struct PeerProbe {
    /// Bytes without effect, which only a connected client can be sent.
    enum Message: Equatable {
        /// None are possible.
        case none
        /// A 100 (Continue), which every HTTP/1.1 client must expect (RFC 9110 §15.2).
        case interimResponse
        /// A leading zero of the next chunk's size (RFC 9112 §7.1).
        case leadingZero

        init(isHTTP10: Bool, hasResponseStarted: Bool, isChunked: Bool) {
            if isHTTP10 {
                self = .none
            } else if !hasResponseStarted {
                self = .interimResponse
            } else {
                self = isChunked ? .leadingZero : .none
            }
        }
    }

    /// How long after the half-close the probe is sent, in nanoseconds.
    static let delay: Int64 = 400_000_000

    /// The connection's deadline is that of the probe.
    var isPending = false
    /// The deadline that is restored after the probe.
    private(set) var deadlineAfterwards = Int64.max
    /// A probe was sent for this request.
    private(set) var wasSent = false

    /// A request has begun.
    @inline(__always)
    mutating func begin() {
        wasSent = false
        isPending = false
    }

    /// Schedules a probe in place of the connection's deadline.
    /// - Returns: whether it is scheduled: once for each request.
    mutating func schedule(restoring deadline: Int64) -> Bool {
        guard !wasSent else { return false }
        wasSent = true
        isPending = true
        deadlineAfterwards = deadline
        return true
    }
}
