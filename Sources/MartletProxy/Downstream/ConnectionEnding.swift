/// How a downstream connection will end.
struct ConnectionEnding {
    /// What follows a response.
    enum AfterResponse: Equatable {
        /// The connection waits for the next request.
        case keep
        /// It is closed when its output is sent.
        case closeAfterFlush
        /// Its output is sent: it is closed now.
        case close
    }

    /// How a connection is closed whose output is sent.
    enum AfterFlush: Equatable {
        case close
        /// Closed for writing only: a client that may still be sending could otherwise lose the response.
        case linger
    }

    /// How long input is discarded after the last response, in nanoseconds.
    static let lingerTime: Int64 = 2_000_000_000
    /// How many bytes of it.
    static let lingerBytes = 1024 * 1024

    /// Close once everything is sent.
    var closesAfterFlush = false
    /// The last request was answered before it was read completely.
    var hasUnreadRequest = false
    /// Bytes that may still be discarded while lingering.
    private(set) var lingerBudget = 0

    /// A response was handed over; `closes` if it is the connection's last one.
    @inline(__always)
    mutating func responseEnded(closes: Bool, hasOutput: Bool) -> AfterResponse {
        guard closes else { return .keep }
        closesAfterFlush = true
        return hasOutput ? .closeAfterFlush : .close
    }

    /// The last output was sent.
    /// - Parameters:
    ///   - mayBeSending: there is unread input, or there may be.
    ///   - isReadClosed: the client has closed its sending side.
    @inline(__always)
    func outputSent(mayBeSending: Bool, isReadClosed: Bool) -> AfterFlush {
        mayBeSending && !isReadClosed ? .linger : .close
    }

    /// Input is discarded from now on.
    mutating func startLinger() {
        closesAfterFlush = false
        lingerBudget = ConnectionEnding.lingerBytes
    }

    /// Counts discarded bytes.
    /// - Returns: whether more may be discarded.
    mutating func discard(_ count: Int) -> Bool {
        lingerBudget -= count
        return lingerBudget >= 0
    }
}
