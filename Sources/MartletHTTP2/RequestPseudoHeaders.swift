internal import MartletCore

/// The pseudo-header fields of a request (RFC 9113 §8.3.1, RFC 8441 §4), buffered until the first line can be written.
struct RequestPseudoHeaders: ~Copyable {
    enum Part: Int { case method, path, scheme, authority, protocolName }

    private var bytes = ByteBuffer()
    private var starts = InlineArray<5, Int>(repeating: -1)
    private var ends = InlineArray<5, Int>(repeating: -1)
    /// The request is an extended CONNECT, and one for a WebSocket.
    var isTunnel = false
    var isWebSocket = false

    mutating func clear() {
        bytes.removeAll()
        starts = InlineArray(repeating: -1)
        isTunnel = false
        isWebSocket = false
    }

    func has(_ part: Part) -> Bool { starts[part.rawValue] >= 0 }

    /// Stores a part; `false` for a duplicate.
    mutating func store(_ part: Part, _ value: UnsafeBufferPointer<UInt8>) -> Bool {
        guard !has(part) else { return false }
        starts[part.rawValue] = bytes.count
        unsafe bytes.append(value)
        ends[part.rawValue] = bytes.count
        return true
    }

    /// The part's bytes; valid until the next `store`.
    @unsafe func value(_ part: Part) -> UnsafeBufferPointer<UInt8> {
        guard has(part) else { return unsafe UnsafeBufferPointer(start: nil, count: 0) }
        return unsafe bytes.bytes.part(starts[part.rawValue], ends[part.rawValue])
    }
}
