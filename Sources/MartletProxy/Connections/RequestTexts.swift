internal import MartletCore
internal import MartletHTTP

/// What the log and the headers say of a request, side by side in one buffer: its id, its method, its host, its path.
struct RequestTexts: ~Copyable {
    private var buffer = ByteBuffer()
    private var endOfID = 0
    private var endOfMethod = 0
    private var endOfHost = 0

    /// Begins with the id alone: the head could not be read, or has still to be.
    @inline(__always)
    mutating func begin(requestID: UnsafeBufferPointer<UInt8>) {
        buffer.removeAll()
        unsafe buffer.append(requestID)
        endOfID = requestID.count
        endOfMethod = endOfID
        endOfHost = endOfID
    }

    /// Adds what the head says; the path follows once it is normalised.
    @inline(__always)
    mutating func add(method: UnsafeBufferPointer<UInt8>, host: UnsafeBufferPointer<UInt8>) {
        buffer.truncate(to: endOfID)
        unsafe buffer.append(method)
        endOfMethod = buffer.count
        unsafe buffer.append(host)
        endOfHost = buffer.count
    }

    /// Sets the path: the one spelling that is matched, forwarded and logged.
    @inline(__always)
    mutating func set(path: UnsafeBufferPointer<UInt8>) {
        buffer.truncate(to: endOfHost)
        unsafe buffer.append(path)
    }

    /// Sets the target of a request that was refused before its path had one spelling (``RefusedTarget``).
    @inline(never)
    mutating func set(refused target: UnsafeBufferPointer<UInt8>) {
        buffer.truncate(to: endOfHost)
        unsafe RefusedTarget.append(target, to: &buffer)
    }

    /// Sets what is there of a head that could not be read.
    @inline(never)
    mutating func set(unreadable head: UnsafeBufferPointer<UInt8>) {
        guard let line = unsafe RefusedTarget(head.span) else { return }
        unsafe add(method: head[line.method], host: UnsafeBufferPointer(start: nil, count: 0))
        unsafe set(refused: head[line.target])
    }

    // Each is valid until the texts are changed.

    @unsafe @inline(__always) var requestID: UnsafeBufferPointer<UInt8> { unsafe part(0, endOfID) }
    @unsafe @inline(__always) var method: UnsafeBufferPointer<UInt8> { unsafe part(endOfID, endOfMethod) }
    @unsafe @inline(__always) var host: UnsafeBufferPointer<UInt8> { unsafe part(endOfMethod, endOfHost) }
    @unsafe @inline(__always) var path: UnsafeBufferPointer<UInt8> { unsafe part(endOfHost, buffer.count) }

    @inline(__always)
    private func part(_ start: Int, _ end: Int) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(rebasing: buffer.bytes[start..<end])
    }
}
