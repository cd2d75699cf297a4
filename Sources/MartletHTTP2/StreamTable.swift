internal import MartletCore

/// The open streams by ID: a hash table with open addressing.
struct StreamTable: ~Copyable {
    private var slots: [HTTP2Stream?] = Array(repeating: nil, count: 16)
    private let pool: HTTP2MemoryPool
    private(set) var count = 0

    init(_ pool: HTTP2MemoryPool) { self.pool = pool }

    /// Releases the memory of all streams, with which the table ends.
    func freeAll() {
        for stream in slots { stream?.free(pool) }
    }

    /// Fibonacci hashing: consecutive IDs would form one long run, which `close` scans.
    private func slot(of id: Int32) -> Int {
        Int(UInt32(bitPattern: id) &* 0x9E37_79B1 &>> 16) & (slots.count &- 1)
    }

    /// The open stream with this ID.
    func find(_ id: Int32) -> HTTP2Stream? {
        var index = slot(of: id)
        while let stream = slots[index] {
            if stream.id == id { return stream }
            index = (index &+ 1) & (slots.count &- 1)
        }
        return nil
    }

    /// Opens a stream; its ID must not be open.
    mutating func open(_ id: Int32) -> HTTP2Stream {
        if (count &+ 1) &* 2 > slots.count { grow() }
        let stream = HTTP2Stream(id, pool)
        insert(stream)
        count &+= 1
        return stream
    }

    /// Removes a stream.
    mutating func close(_ id: Int32) {
        var hole = slot(of: id)
        while let stream = slots[hole], stream.id != id { hole = (hole &+ 1) & (slots.count &- 1) }
        guard let stream = slots[hole] else { return }
        slots[hole] = nil
        count &-= 1
        fill(hole)
        stream.free(pool)
    }

    /// Backward-shift deletion: moves entries that would not be found across the hole.
    private mutating func fill(_ start: Int) {
        let mask = slots.count &- 1
        var hole = start
        var index = (hole &+ 1) & mask
        while let stream = slots[index] {
            let home = slot(of: stream.id)
            if (index &- home) & mask >= (index &- hole) & mask {
                slots[hole] = stream
                slots[index] = nil
                hole = index
            }
            index = (index &+ 1) & mask
        }
    }

    private mutating func insert(_ stream: HTTP2Stream) {
        var index = slot(of: stream.id)
        while slots[index] != nil { index = (index &+ 1) & (slots.count &- 1) }
        slots[index] = stream
    }

    private mutating func grow() {
        let old = slots
        slots = Array(repeating: nil, count: old.count &* 2)
        for stream in old { if let stream { insert(stream) } }
    }
}
