internal import CNghttp2
internal import MartletCore
internal import MartletHTTP

/// The state of a session, in memory of its own that nghttp2's callbacks get as their user data.
///
/// It is only accessed in place and for the length of one statement: nghttp2 calls back into the session from nearly
/// everything that is asked of it.
@safe struct SessionParts: ~Copyable {
    let options: HTTP2Options
    let isServer: Bool
    /// nghttp2's session; nil only during initialization.
    var handle: OpaquePointer?
    var ending = SessionEnding()
    var memory: SessionMemory
    var input: SessionInput
    var output = SessionOutput()
    var heads: SubmittedHeads
    var table: StreamTable
    var queue = EventQueue()
    var writer: HeadWriter
    var cache = FieldCache()
    var floods: FrameFloodLimiter
    var peerStreams = PeerStreamIDs()
    var resets = RecentResets()
    /// Streams that were closed before their peer had finished, with events still queued.
    var aborted: [(stream: Int32, code: HTTP2Code)] = []
    let owner: UnsafeMutablePointer<OwnerData>

    init(_ options: HTTP2Options, _ shared: HTTP2MemoryPool?, isServer: Bool) {
        memory = SessionMemory(shared)
        table = StreamTable(memory.pool)
        self.options = options
        self.isServer = isServer
        unsafe handle = nil
        unsafe owner = .allocate(capacity: 1)
        unsafe owner.initialize(to: OwnerData())
        heads = SubmittedHeads(isServer: isServer)
        writer = HeadWriter(
            headerBytes: options.headerBytes, headerFields: options.headerFields,
            maximumTargetBytes: options.maximumTargetBytes)
        floods = FrameFloodLimiter(
            maximumFloodFrames: options.maximumFloodFrames, maximumResets: options.maximumResets)
        input = SessionInput(isServer: isServer)
    }

    deinit {
        table.freeAll()
        unsafe owner.deinitialize(count: 1)
        unsafe owner.deallocate()
    }
}

/// Whether a connection is ending, and why.
struct SessionEnding {
    /// Why the connection ends, once it is ending.
    var code: HTTP2Code?
    /// No new streams: GOAWAY was sent or received.
    var isGoingAway = false
    var hasSentGoAway = false
}

/// The memory that a session shares with the other sessions of its loop.
struct SessionMemory {
    let pool: HTTP2MemoryPool
    /// The session has no loop: the pool is its own.
    let isOwned: Bool
    /// The writer uses the pool's memory.
    var isInUse = false

    init(_ shared: HTTP2MemoryPool?) {
        pool = shared ?? HTTP2MemoryPool(cacheLimit: 0)
        isOwned = shared == nil
    }
}

/// What a session knows of the bytes that it receives.
@safe struct SessionInput {
    /// The start of the bytes that are being received.
    var start: UnsafePointer<UInt8>?
    var scanner: FrameScanner
    /// A header block, or the peer's preface up to its first SETTINGS, is incomplete.
    var isReceivingHead = true
    var hasSettings = false
    /// SETTINGS were just processed: the next output shows whether they were valid.
    var isApplyingSettings = false
    /// The current frame has contained no data so far.
    var isFrameEmpty = true

    init(isServer: Bool) {
        unsafe start = nil
        scanner = FrameScanner(preface: isServer ? FrameScanner.magicBytes : 0)
    }
}

/// What a session has to send.
struct SessionOutput: ~Copyable {
    /// The output of `produce`, and what `receive` has produced.
    var buffer = ByteBuffer()
    /// Where `produce` stops.
    var limit = 0
    /// nghttp2 has no output until the next input or submission.
    var isExhausted = false
    /// Body bytes of all streams that wait for flow control.
    var unsentTotal = 0
}

/// The heads that were submitted last, parsed: those of a connection differ little.
struct SubmittedHeads: ~Copyable {
    /// Of a server.
    var response: ResponseHead
    var responseParser: ResponseParser
    /// Of a client.
    var request: RequestHead
    var requestParser: RequestParser
    /// Scratch memory for their fields.
    var lines = FieldLines()

    init(isServer: Bool) {
        response = ResponseHead(maximumFields: isServer ? HTTP2Limits.fastFields : 1)
        responseParser = ResponseParser(maximumHeadBytes: HTTP2Limits.fastHeadBytes)
        request = RequestHead(maximumFields: isServer ? 1 : HTTP2Limits.fastFields)
        requestParser = RequestParser(
            maximumHeadBytes: HTTP2Limits.fastHeadBytes, maximumTargetBytes: HTTP2Limits.fastHeadBytes)
    }
}

/// What the owner of a session stores with it.
package struct OwnerData: ~Copyable {
    /// The owner's number for each stream.
    package var numbers = StreamMap()
    /// Two instants, in nanoseconds of the monotonic clock; `max` at first.
    package var times = (Int64.max, Int64.max)
}
