internal import MartletCore
internal import MartletHTTP

/// One connection to an upstream endpoint.
struct Link: ~Copyable, SlabElement {
    enum Phase: UInt8 { case connecting, idle, awaitingHead, body }

    var generation: UInt32 = 0
    var isAlive = false

    var fd: Int32 = -1
    /// Index into the worker's endpoints.
    var endpoint: Int32 = -1
    /// The exchange it carries, or −1.
    var exchange: Int32 = -1
    var phase = Phase.connecting
    var parser = ResponseParser(maximumHeadBytes: 65_536)
    /// Received and not yet used.
    var input = ByteBuffer()
    /// Not yet taken by the kernel.
    var output = ByteBuffer()
    var isPaused = false
    var isReady = false
    /// Exchanges it carried before this one.
    var served = 0
    /// Bytes of the current answer were seen.
    var hasAnswered = false
    var framing = BodyFraming.none
    var remaining = 0
    var decoder = ChunkedDecoder()
    /// The upstream will keep the connection open.
    var keepsAlive = false
    /// The peer will send no more.
    var hasEnded = false
    var interimAnswers = 0
    var idlePatience: Int64 = 60_000_000_000
    var deadline = Int64.max
    var scheduled = Int64.max

    mutating func open(fd: Int32, endpoint: Int32, connected: Bool) {
        self.fd = fd
        self.endpoint = endpoint
        exchange = -1
        phase = connected ? .idle : .connecting
        isPaused = false
        isReady = false
        served = 0
        hasAnswered = false
        keepsAlive = false
        hasEnded = false
        interimAnswers = 0
        deadline = .max
        scheduled = .max
    }

    /// Gets ready to read the answer of the next request.
    mutating func expectAnswer() {
        phase = .awaitingHead
        // The last answer may have ended while its client was slow.
        isPaused = false
        hasAnswered = false
        framing = .none
        remaining = 0
        interimAnswers = 0
        parser.reset()
    }

    mutating func close() {
        fd = -1
        exchange = -1
        input.release()
        output.release()
    }
}
