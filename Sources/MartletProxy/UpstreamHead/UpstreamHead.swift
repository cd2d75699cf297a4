internal import MartletCore
internal import MartletDecisions
internal import MartletTracing

/// The head of a request as an upstream gets it, and how much of it was sent.
///
/// Only ``UpstreamHeadWriter`` fills one, for an ``AuthorizedRequest``: what is sent to an endpoint was authorized. It is
/// kept until a response arrives, so that the request can be sent again.
struct UpstreamHead: ~Copyable {
    /// How far the span's ID is from the end of a head that has one: it is in the last line.
    private static let spanTail = 23

    private var buffer = ByteBuffer()
    /// How much of it was sent.
    var sent = 0
    /// Offsets of the `Host` line that gets the endpoint's name; zeros where another one is written.
    private(set) var hostLine: (start: Int, end: Int) = (0, 0)
    private var hasSpan = false

    init() {}

    @inline(__always)
    mutating func begin() {
        buffer.removeAll()
        sent = 0
        hasSpan = false
    }

    var count: Int { @inline(__always) get { buffer.count } }

    var bytes: UnsafeBufferPointer<UInt8> { @inline(__always) get { unsafe buffer.bytes } }

    var isSent: Bool { @inline(__always) get { sent == buffer.count } }

    var unsent: UnsafeBufferPointer<UInt8> {
        @inline(__always) get { unsafe UnsafeBufferPointer(rebasing: buffer.bytes[sent...]) }
    }

    /// Releases its memory: it will not be sent again.
    mutating func release() {
        buffer.release()
        sent = 0
    }

    // MARK: Writing

    /// Takes a head that was written to a buffer, and gives the memory of earlier ones back.
    /// - Parameter hostLine: offsets of the line that gets the endpoint's name, or zeros.
    @inline(__always)
    mutating func take(_ lines: inout ByteBuffer, hostLine: (start: Int, end: Int)) {
        swap(&lines, &buffer)
        self.hostLine = hostLine
    }

    /// The memory of earlier lines, for new ones.
    @inline(__always)
    mutating func takeMemory() -> ByteBuffer { buffer.take() }

    /// Appends what vendors say about its trace, if they do.
    mutating func append(traceState state: [UInt8]) {
        guard !state.isEmpty else { return }
        buffer.openHead()
        buffer.append("tracestate: ")
        buffer.append(state)
        buffer.append("\r\n\r\n")
    }

    /// Appends the context of its trace.
    mutating func append(_ identity: TraceIdentity) {
        buffer.openHead()
        buffer.append(traceparent: identity.trace, identity.span, isSampled: identity.isSampled)
        hasSpan = true
    }

    // MARK: For an attempt

    /// Fills in `Host` with the name of the endpoint, unless the head has the client's line: a reload between two
    /// attempts may have changed which one the upstream gets.
    ///
    /// - Parameter scratch: is overwritten.
    mutating func fillInHost(_ name: [UInt8], scratch: inout ByteBuffer) {
        let line = hostLine
        guard line.end > 0 else { return }
        scratch.removeAll()
        let old = unsafe buffer.bytes
        unsafe scratch.append(unsafe UnsafeBufferPointer(rebasing: old[..<line.start]))
        scratch.append("Host: ")
        scratch.append(name)
        scratch.append("\r\n")
        let end = scratch.count
        unsafe scratch.append(unsafe UnsafeBufferPointer(rebasing: old[line.end...]))
        hostLine = (line.start, end)
        buffer.removeAll()
        unsafe buffer.append(unsafe scratch.bytes)
    }

    /// Names the span of an attempt as the parent of what the upstream does.
    /// - Returns: whether the head names one.
    mutating func replaceSpan(by span: SpanID) -> Bool {
        guard hasSpan else { return false }
        let isSampled = unsafe buffer.bytes[buffer.count - 5] == 0x31
        buffer.truncate(to: buffer.count - Self.spanTail)
        buffer.append(sixteenDigits: span.number)
        buffer.append(isSampled ? "-01\r\n\r\n" : "-00\r\n\r\n")
        return true
    }

    /// The path in it, without the query.
    var path: String {
        let line = unsafe buffer.bytes.prefix { $0 != 0x0D }
        guard let space = unsafe line.firstIndex(of: 0x20) else { return "" }
        return unsafe String(decoding: line[(space + 1)...].prefix { $0 != 0x20 && $0 != 0x3F }, as: UTF8.self)
    }
}

#if DEBUG
extension UpstreamHead {
    /// A head that nothing was authorized for, in tests alone.
    init(_ bytes: some Sequence<UInt8>, hostLine: (start: Int, end: Int) = (0, 0)) {
        self.init()
        var lines = ByteBuffer()
        lines.append(Array(bytes))
        take(&lines, hostLine: hostLine)
    }
}
#endif
