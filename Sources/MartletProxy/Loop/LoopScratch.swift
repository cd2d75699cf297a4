internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP2

/// Memory of a loop that its connections share.
struct LoopScratch: ~Copyable {
    let receiveBuffer = ReceiveBuffer()
    var pending = PendingResponse()
    /// The head of a request whose host is being replaced.
    var rewrittenHead = ByteBuffer()
    /// Received bytes of a client with the target of a request encoded, until they are consumed instead.
    var encodedInput = ByteBuffer()
    /// The last decrypted bytes, or the next to encrypt.
    var plaintext = ByteBuffer(capacity: 64 * 1024)
    /// The normalized path of the request that is being admitted; empty where it is the received one.
    var normalizedPath = ByteBuffer(capacity: 8 * 1024)
    /// Pipes for splicing long bodies.
    var pipes = SplicePipes()
    /// Chooses the requests that are copied.
    var samples = SampleNumbers(seed: .random(in: .min ... .max))
    /// The memory of all HTTP/2 sessions of the loop.
    let http2Memory = HTTP2MemoryPool()

    init() {}
}
