internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP

/// The texts of a request for logs and headers: its ID, its client, its method, its host, its path, and its caller.
///
/// They stand in one buffer as in a JSON access record, with the names of the members between them: the record gets all
/// of them in one copy.
struct RequestTexts: ~Copyable {
    private static let beforeClient: StaticString = "\",\"client\":\""
    private static let beforeMethod: StaticString = "\",\"method\":\""
    private static let beforeHost: StaticString = "\",\"host\":\""
    private static let beforePath: StaticString = "\",\"path\":\""
    private static let beforeTrace: StaticString = "\",\"trace_id\":\""
    /// What follows the client while the rest is unknown.
    private static let unknown: StaticString = "\",\"method\":\"\",\"host\":\"\",\"path\":\""

    private var buffer = ByteBuffer()
    private var endOfID = 0
    private var startOfMethod = 0
    private var endOfMethod = 0
    private var endOfHost = 0
    private var endOfPath = 0
    /// 0 without the ID of a trace.
    private var endOfCaller = 0

    init() { unsafe begin(requestID: UnsafeBufferPointer(start: nil, count: 0), client: AddressText()) }

    /// Begins with the ID and the client: the head could not be parsed, or is not parsed yet.
    @inline(__always)
    mutating func begin(requestID: UnsafeBufferPointer<UInt8>, client: borrowing AddressText) {
        // Taken out of its owner: the offsets of a local stay in registers.
        var out = buffer.take()
        out.removeAll()
        unsafe out.append(requestID)
        endOfID = out.count
        endOfCaller = 0
        out.append(RequestTexts.beforeClient)
        out.append(client)
        appendUnknown(to: &out)
        swap(&out, &buffer)
    }

    /// Sets the client, before method and host are added.
    @inline(never)
    mutating func set(client: AddressText) {
        var out = buffer.take()
        out.truncate(to: endOfID &+ RequestTexts.beforeClient.utf8CodeUnitCount)
        out.append(client)
        appendUnknown(to: &out)
        swap(&out, &buffer)
    }

    /// Ends the client with an empty method, host and path.
    @inline(__always)
    private mutating func appendUnknown(to out: inout ByteBuffer) {
        startOfMethod = out.count &+ RequestTexts.beforeMethod.utf8CodeUnitCount
        endOfMethod = startOfMethod
        endOfHost = endOfMethod &+ RequestTexts.beforeHost.utf8CodeUnitCount
        endOfPath = endOfHost &+ RequestTexts.beforePath.utf8CodeUnitCount
        out.append(RequestTexts.unknown)
    }

    /// Adds method and host; the path follows once it is normalized.
    @inline(__always)
    mutating func add(method: UnsafeBufferPointer<UInt8>, host: UnsafeBufferPointer<UInt8>) {
        var out = buffer.take()
        out.truncate(to: startOfMethod)
        unsafe out.append(method)
        endOfMethod = out.count
        out.append(RequestTexts.beforeHost)
        unsafe out.append(host)
        endOfHost = out.count
        out.append(RequestTexts.beforePath)
        endOfPath = out.count
        swap(&out, &buffer)
    }

    /// Sets the path: the one spelling that is matched, forwarded and logged.
    @inline(__always)
    mutating func set(path: UnsafeBufferPointer<UInt8>) {
        buffer.truncate(to: startOfPath)
        unsafe buffer.append(path)
        endOfPath = buffer.count
    }

    /// Adds the caller, as `CallerNames` writes it.
    @inline(__always)
    mutating func add(names: UnsafeBufferPointer<UInt8>) {
        guard !names.isEmpty else { return }
        buffer.truncate(to: endOfPath)
        unsafe buffer.append(names)
    }

    /// Adds the ID of its trace, behind everything else: nothing is added or set afterwards.
    @inline(never)
    mutating func add(trace: String) {
        endOfCaller = buffer.count
        buffer.append(RequestTexts.beforeTrace)
        buffer.append(text: trace)
    }

    /// Sets the target of a request that was rejected before its path was normalized (``RejectedTarget``).
    @inline(never)
    mutating func set(rejected target: UnsafeBufferPointer<UInt8>) {
        buffer.truncate(to: startOfPath)
        unsafe RejectedTarget.append(target, to: &buffer)
        endOfPath = buffer.count
    }

    /// Sets what is readable of a head that could not be parsed.
    @inline(never)
    mutating func set(unreadable head: UnsafeBufferPointer<UInt8>) {
        guard let line = unsafe RejectedTarget(head.span) else { return }
        unsafe add(method: head[line.method], host: UnsafeBufferPointer(start: nil, count: 0))
        unsafe set(rejected: head[line.target])
    }

    // Each is valid until the texts are changed.

    /// All texts, as they stand in a JSON access record from the value of its `request_id` on.
    @unsafe @inline(__always) var members: UnsafeBufferPointer<UInt8> { unsafe buffer.bytes }
    /// Those before the path.
    @unsafe @inline(__always) var beforePath: UnsafeBufferPointer<UInt8> { unsafe part(0, startOfPath) }
    @unsafe @inline(__always) var requestID: UnsafeBufferPointer<UInt8> { unsafe part(0, endOfID) }
    @unsafe @inline(__always) var client: UnsafeBufferPointer<UInt8> {
        unsafe part(
            endOfID &+ RequestTexts.beforeClient.utf8CodeUnitCount,
            startOfMethod &- RequestTexts.beforeMethod.utf8CodeUnitCount)
    }
    @unsafe @inline(__always) var method: UnsafeBufferPointer<UInt8> { unsafe part(startOfMethod, endOfMethod) }
    @unsafe @inline(__always) var host: UnsafeBufferPointer<UInt8> {
        unsafe part(endOfMethod &+ RequestTexts.beforeHost.utf8CodeUnitCount, endOfHost)
    }
    @unsafe @inline(__always) var path: UnsafeBufferPointer<UInt8> { unsafe part(startOfPath, endOfPath) }
    /// The ID of the trace; empty without one.
    @unsafe var trace: UnsafeBufferPointer<UInt8> {
        unsafe part(
            endOfCaller > 0 ? endOfCaller &+ RequestTexts.beforeTrace.utf8CodeUnitCount : buffer.count, buffer.count)
    }
    /// The caller without the ID of the trace.
    @unsafe var caller: UnsafeBufferPointer<UInt8> {
        unsafe part(endOfPath, endOfCaller > 0 ? endOfCaller : buffer.count)
    }
    /// The caller, and the ID of the trace.
    @unsafe @inline(__always) var names: UnsafeBufferPointer<UInt8> { unsafe part(endOfPath, buffer.count) }

    @inline(__always) private var startOfPath: Int { endOfHost &+ RequestTexts.beforePath.utf8CodeUnitCount }

    @inline(__always)
    private func part(_ start: Int, _ end: Int) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(rebasing: buffer.bytes[start..<end])
    }
}
