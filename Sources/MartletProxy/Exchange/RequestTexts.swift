internal import MartletCore
internal import MartletHTTP

/// The texts of a request for logs and headers, in one buffer: its ID, its method, its host, its path, and its caller.
struct RequestTexts: ~Copyable {
    private var buffer = ByteBuffer()
    private var endOfID = 0
    private var endOfMethod = 0
    private var endOfHost = 0
    private var endOfPath = 0

    /// Begins with the ID alone: the head could not be parsed, or is not parsed yet.
    @inline(__always)
    mutating func begin(requestID: UnsafeBufferPointer<UInt8>) {
        buffer.removeAll()
        unsafe buffer.append(requestID)
        endOfID = requestID.count
        endOfMethod = endOfID
        endOfHost = endOfID
        endOfPath = endOfID
    }

    /// Adds method and host; the path follows once it is normalized.
    @inline(__always)
    mutating func add(method: UnsafeBufferPointer<UInt8>, host: UnsafeBufferPointer<UInt8>) {
        buffer.truncate(to: endOfID)
        unsafe buffer.append(method)
        endOfMethod = buffer.count
        unsafe buffer.append(host)
        endOfHost = buffer.count
        endOfPath = endOfHost
    }

    /// Sets the path: the one spelling that is matched, forwarded and logged.
    @inline(__always)
    mutating func set(path: UnsafeBufferPointer<UInt8>) {
        buffer.truncate(to: endOfHost)
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

    /// Sets the target of a request that was rejected before its path was normalized (``RejectedTarget``).
    @inline(never)
    mutating func set(rejected target: UnsafeBufferPointer<UInt8>) {
        buffer.truncate(to: endOfHost)
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

    @unsafe @inline(__always) var requestID: UnsafeBufferPointer<UInt8> { unsafe part(0, endOfID) }
    @unsafe @inline(__always) var method: UnsafeBufferPointer<UInt8> { unsafe part(endOfID, endOfMethod) }
    @unsafe @inline(__always) var host: UnsafeBufferPointer<UInt8> { unsafe part(endOfMethod, endOfHost) }
    @unsafe @inline(__always) var path: UnsafeBufferPointer<UInt8> { unsafe part(endOfHost, endOfPath) }
    @unsafe @inline(__always) var names: UnsafeBufferPointer<UInt8> { unsafe part(endOfPath, buffer.count) }

    @inline(__always)
    private func part(_ start: Int, _ end: Int) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(rebasing: buffer.bytes[start..<end])
    }
}
