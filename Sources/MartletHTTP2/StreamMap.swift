/// Numbers by stream ID: a hash table with open addressing in memory of its own.
@safe package struct StreamMap: ~Copyable {
    /// Pairs of a stream ID and its number; the ID is 0 where the slot is free.
    private var slots: UnsafeMutablePointer<(stream: Int32, number: Int32)>
    private var capacity = 16
    package private(set) var count = 0

    package init() {
        unsafe slots = .allocate(capacity: 16)
        unsafe slots.initialize(repeating: (0, 0), count: 16)
    }

    deinit { unsafe slots.deallocate() }

    package var isEmpty: Bool { count == 0 }

    /// The numbers of all streams, in no order.
    package var values: [Int32] {
        var list: [Int32] = []
        for index in 0..<capacity where unsafe slots[index].stream != 0 { list.append(unsafe slots[index].number) }
        return list
    }

    /// The number of a stream, whose ID is greater than 0.
    ///
    /// Setting `nil` removes it.
    package subscript(stream: Int32) -> Int32? {
        get {
            let index = find(stream)
            return unsafe slots[index].stream == 0 ? nil : slots[index].number
        }
        set {
            precondition(stream > 0)
            guard let newValue else { return remove(stream) }
            if (count &+ 1) &* 2 > capacity { grow() }
            let index = find(stream)
            if unsafe slots[index].stream == 0 { count &+= 1 }
            unsafe slots[index] = (stream, newValue)
        }
    }

    /// Fibonacci hashing: consecutive IDs would form one long run, which `remove` scans.
    @inline(__always)
    private func home(_ stream: Int32) -> Int {
        Int(UInt32(bitPattern: stream) &* 0x9E37_79B1 &>> 16) & (capacity &- 1)
    }

    /// The slot of a stream, or the free one where it would be.
    @inline(__always)
    private func find(_ stream: Int32) -> Int {
        var index = home(stream)
        while unsafe slots[index].stream != stream && slots[index].stream != 0 {
            index = (index &+ 1) & (capacity &- 1)
        }
        return index
    }

    /// Backward-shift deletion: moves entries that would not be found across the hole.
    private mutating func remove(_ stream: Int32) {
        var hole = find(stream)
        guard unsafe slots[hole].stream != 0 else { return }
        count &-= 1
        var index = (hole &+ 1) & (capacity &- 1)
        while unsafe slots[index].stream != 0 {
            let home = unsafe home(slots[index].stream)
            if (index &- home) & (capacity &- 1) >= (index &- hole) & (capacity &- 1) {
                unsafe slots[hole] = slots[index]
                hole = index
            }
            index = (index &+ 1) & (capacity &- 1)
        }
        unsafe slots[hole] = (0, 0)
    }

    @inline(never)
    private mutating func grow() {
        let (old, size) = unsafe (slots, capacity)
        capacity = size &* 2
        unsafe slots = .allocate(capacity: capacity)
        unsafe slots.initialize(repeating: (0, 0), count: capacity)
        for index in 0..<size where unsafe old[index].stream != 0 {
            unsafe slots[find(old[index].stream)] = unsafe old[index]
        }
        unsafe old.deallocate()
    }
}
