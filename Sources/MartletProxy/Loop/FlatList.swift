/// An append-only list in one block of memory with a single owner: elements are changed in place, without the
/// uniqueness checks of an array.
///
/// An index out of range traps: indices are the gateway's own, never a peer's.
@safe struct FlatList<Element>: ~Copyable {
    private var base: UnsafeMutablePointer<Element>
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int = 16) {
        unsafe base = .allocate(capacity: max(capacity, 1))
        self.capacity = max(capacity, 1)
    }

    init(repeating element: Element, count: Int) {
        self.init(capacity: count)
        append(element, times: count)
    }

    deinit {
        unsafe base.deinitialize(count: count)
        unsafe base.deallocate()
    }

    var indices: Range<Int> { 0..<count }

    /// Appends an element.
    mutating func append(_ element: Element) {
        if count == capacity { grow() }
        unsafe (base + count).initialize(to: element)
        count &+= 1
    }

    /// Appends the same element several times.
    mutating func append(_ element: Element, times: Int) {
        for _ in 0..<times { append(element) }
    }

    /// Removes all elements and retains the memory.
    mutating func removeAll() {
        unsafe base.deinitialize(count: count)
        count = 0
    }

    subscript(index: Int) -> Element {
        @inline(__always)
        unsafeAddress {
            precondition(index >= 0 && index < count)
            return unsafe UnsafePointer(base + index)
        }
        @inline(__always)
        nonmutating unsafeMutableAddress {
            precondition(index >= 0 && index < count)
            return unsafe base + index
        }
    }

    @inline(never)
    private mutating func grow() {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        unsafe larger.moveInitialize(from: base, count: count)
        unsafe base.deallocate()
        unsafe base = larger
        capacity *= 2
    }
}
