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
    /// The start of the bytes that are being received.
    var inputStart: UnsafePointer<UInt8>?
    /// Why the connection ends, once it is ending.
    var ending: HTTP2Code?
    /// nghttp2 has no output until the next input or submission.
    var hasNothingToSend = false
    var hasSentGoAway = false
    var isGoingAway = false
    /// A header block, or the peer's preface up to its first SETTINGS, is incomplete.
    var isReceivingHead = true
    var hasSettings = false
    /// SETTINGS were just processed: the next output shows whether they were valid.
    var isApplyingSettings = false
    /// The current frame has contained no data so far.
    var isFrameEmpty = true
    /// Body bytes of all streams that wait for flow control.
    var unsentTotal = 0
    let pool: HTTP2MemoryPool
    let ownsPool: Bool
    var table: StreamTable
    var queue = EventQueue()
    var writer: HeadWriter
    /// The writer uses the pool's memory.
    var hasPoolMemory = false
    var cache = FieldCache()
    var floods: FrameFloodLimiter
    var scanner: FrameScanner
    /// The output buffer: of `produce`, and what `receive` has produced.
    var sink = ByteBuffer()
    var sinkLimit = 0
    /// Scratch memory for outgoing heads.
    var lines = FieldLines()
    var peerStreams = PeerStreamIDs()
    var resets = RecentResets()
    /// Streams that were closed before their peer had finished, with events still queued.
    var aborted: [(stream: Int32, code: HTTP2Code)] = []
    /// The response head that was submitted last, parsed, and its parser.
    var response: ResponseHead
    var responseParser: ResponseParser
    /// The same for the requests of a client.
    var request: RequestHead
    var requestParser: RequestParser
    let owner: UnsafeMutablePointer<OwnerData>

    init(_ options: HTTP2Options, _ shared: HTTP2MemoryPool?, isServer: Bool) {
        pool = shared ?? HTTP2MemoryPool(cacheLimit: 0)
        ownsPool = shared == nil
        table = StreamTable(pool)
        self.options = options
        self.isServer = isServer
        unsafe handle = nil
        unsafe inputStart = nil
        unsafe owner = .allocate(capacity: 1)
        unsafe owner.initialize(to: OwnerData())
        response = ResponseHead(maximumFields: isServer ? HTTP2Limits.fastFields : 1)
        responseParser = ResponseParser(maximumHeadBytes: HTTP2Limits.fastHeadBytes)
        request = RequestHead(maximumFields: isServer ? 1 : HTTP2Limits.fastFields)
        requestParser = RequestParser(
            maximumHeadBytes: HTTP2Limits.fastHeadBytes, maximumTargetBytes: HTTP2Limits.fastHeadBytes)
        writer = HeadWriter(
            headerBytes: options.headerBytes, headerFields: options.headerFields,
            maximumTargetBytes: options.maximumTargetBytes)
        floods = FrameFloodLimiter(
            maximumFloodFrames: options.maximumFloodFrames, maximumResets: options.maximumResets)
        scanner = FrameScanner(preface: isServer ? FrameScanner.magicBytes : 0)
    }

    deinit {
        table.freeAll()
        unsafe owner.deinitialize(count: 1)
        unsafe owner.deallocate()
    }
}

/// What the owner of a session stores with it.
package struct OwnerData: ~Copyable {
    /// The owner's number for each stream.
    package var numbers = StreamMap()
    /// Two instants, in nanoseconds of the monotonic clock; `max` at first.
    package var times = (Int64.max, Int64.max)
}
