package import MartletHTTP

/// The offsets of field lines, one head after the other, in memory of their own.
@safe package struct FieldOffsetsList: ~Copyable {
    private var base: UnsafeMutablePointer<FieldOffsets>
    private var capacity = 32
    package private(set) var count = 0

    init() { unsafe base = .allocate(capacity: 32) }

    deinit { unsafe base.deallocate() }

    /// Some of them; valid until the list is changed.
    @unsafe package func part(_ start: Int, _ count: Int) -> UnsafeBufferPointer<FieldOffsets> {
        precondition(start >= 0 && count >= 0 && start &+ count <= self.count)
        return unsafe UnsafeBufferPointer(start: base + start, count: count)
    }

    @inline(__always)
    mutating func append(_ line: FieldOffsets) {
        if count == capacity { resize(to: capacity &* 2) }
        unsafe (base + count).initialize(to: line)
        count &+= 1
    }

    mutating func truncate(to count: Int) {
        precondition(count >= 0 && count <= self.count)
        self.count = count
    }

    /// Removes the first ones; memory for many is given back with the last.
    mutating func drop(_ first: Int) {
        precondition(first >= 0 && first <= count)
        count &-= first
        unsafe base.update(from: base + first, count: count)
        if count == 0, capacity > 4096 { resize(to: 32) }
    }

    @inline(never)
    private mutating func resize(to capacity: Int) {
        let other = UnsafeMutablePointer<FieldOffsets>.allocate(capacity: capacity)
        unsafe other.moveInitialize(from: base, count: count)
        unsafe base.deallocate()
        unsafe base = other
        self.capacity = capacity
    }
}
