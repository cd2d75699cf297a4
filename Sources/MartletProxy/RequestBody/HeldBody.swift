internal import MartletCore
internal import MartletDecisions

/// The content of a request's body that this process holds: for a local handler, or what was reclaimed from a failed
/// upstream connection.
struct HeldBody: ~Copyable {
    private var content = ByteBuffer()
    /// The memory of a body for a local handler; `nil` for what was reclaimed.
    private var lease: BodyLease?

    var isEmpty: Bool { content.isEmpty }

    /// The content as an array, for a local handler.
    var array: [UInt8] { content.array }

    /// Makes sure of the memory for a piece that is appended up to `limit` next.
    /// - Parameter isWhole: whether it is the last piece.
    /// - Returns: `false` if the network, or the process, keeps too much already.
    @inline(never)
    mutating func reserve(
        _ count: Int, isWhole: Bool, upTo limit: Int, for owner: WorkOwner, in pool: BodyPool
    ) -> Bool {
        let count = min(max(limit &- content.count, 0), count)
        if let lease { return lease.grow(by: count, isWhole: isWhole) }
        lease = BodyLease(count, isWhole: isWhole, for: owner, in: pool)
        return lease != nil
    }

    /// Appends a piece, as far as it fits into `limit` bytes in all.
    mutating func append(_ piece: UnsafeBufferPointer<UInt8>, upTo limit: Int) {
        let count = min(max(limit &- content.count, 0), piece.count)
        unsafe content.append(UnsafeBufferPointer(rebasing: piece[..<count]))
    }

    /// Moves what an upstream connection could not send back into this, in a form that any other can send.
    mutating func reclaim(_ unsent: inout ByteBuffer, from encoder: UpstreamBodyEncoder) {
        unsafe encoder.decode(unsent.bytes, into: &content)
        unsent.release()
    }

    /// Moves the content to the output of an upstream connection.
    mutating func forward(to output: inout ByteBuffer, with encoder: UpstreamBodyEncoder) {
        unsafe encoder.append(content.bytes, to: &output)
        content.release()
    }

    /// Replaces the content, or takes it.
    mutating func exchange(with other: inout ByteBuffer) { swap(&content, &other) }

    @inline(__always)
    mutating func release() {
        content.release()
        if lease != nil { lease = nil }
    }
}
