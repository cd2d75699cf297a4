internal import MartletCore
internal import MartletDecisions
internal import MartletTLS

/// One connection to an upstream endpoint, or one stream of an HTTP/2 connection to it.
// lint:large-type what a connection is counted by stands beside the state that decides when it is counted out
struct UpstreamConnection: ~Copyable, SlabElement {
    var generation: UInt32 = 0
    var isAlive = false

    var kind = UpstreamKind.http1
    var phase = UpstreamPhase.connecting
    var transport = Transport()
    /// Of an HTTP/2 connection: its framing and streams.
    var streams: UpstreamHTTP2State?
    /// Of a stream: its connection, and its state there.
    var stream = UpstreamStream()
    /// The endpoint that it is connected to.
    var endpoint = EndpointIndex.none
    /// The exchange it carries.
    var exchange = Handle<Exchange>.none
    /// Received and not yet consumed.
    var input = ByteBuffer()
    /// Not yet sent, in clear text.
    var output = ByteBuffer()
    var response = UpstreamResponse()
    /// The pipe with a part of the response that the client has not accepted yet.
    var pipe = PipeHandle.none
    var timer = ConnectionTimer()
    /// How long it may be idle, in nanoseconds.
    var idleTimeout: Int64 = 60_000_000_000
    /// Exchanges it carried before this one.
    var served = 0
    /// Reading is paused because the client is slower.
    var isPaused = false
    /// In the list of connections to resume before the next wait.
    var isReady = false
    /// Of an HTTP/2 connection: frames may wait to be written.
    var isDirty = false
    /// Where it is counted among the connections of its upstream, if that counts them.
    var counter = CounterEntry()
    /// What it has of the descriptors.
    var descriptor = DescriptorCharge()

    mutating func open(fd: Int32, kind: UpstreamKind, endpoint: EndpointIndex, connected: Bool) {
        self.kind = kind
        self.endpoint = endpoint
        phase = connected ? .idle : .connecting
        transport.open(fd)
        stream = UpstreamStream()
        exchange = .none
        response.hasBegun = false
        response.keepsAlive = false
        response.interimBytes = 0
        timer = ConnectionTimer()
        served = 0
        isPaused = false
        isReady = false
        isDirty = false
    }

    /// Whether it can carry requests now; inlined, as a function that reads an element gets a copy of it.
    @inline(__always)
    var isUp: Bool { phase != .connecting && phase != .handshake }

    /// Prepares for the response of the next request.
    @inline(__always)
    mutating func expectResponse() {
        phase = .awaitingHead
        // The last response may have ended while its client was slow.
        isPaused = false
        response.expect()
    }

    mutating func close() {
        exchange = .none
        streams = nil
        transport.close()
        input.release()
        output.release()
    }
}

/// What a stream of an HTTP/2 connection has that a connection has not.
struct UpstreamStream {
    /// Its connection, and its stream ID there (0 before it is submitted).
    var connection = Handle<UpstreamConnection>.none
    var id: Int32 = 0
    /// Its response consists of a head alone.
    var endsWithHead = false
    /// The response's last frame was received.
    var isEnded = false
    /// It was closed by the peer or by the framing.
    var isClosed = false
    /// The end of the request was submitted.
    var hasEndedRequest = false
    /// Request bytes that had been sent when its deadline was last checked.
    var sentAtCheck = 0
}
