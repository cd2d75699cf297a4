/// An element of a slab: it knows whether its slot is allocated, and the slot's generation.
protocol SlabElement: ~Copyable {
    /// A fresh element for a slot; called once per slot, the element is then reused.
    init()
    /// Counts the slot's allocations, so that late events of earlier ones can be recognized.
    var generation: UInt32 { get set }
    var isAlive: Bool { get set }
}

/// Connections and exchanges in one block of memory, reached by index: no objects, no reference counts.
///
/// An index out of range traps: indices are the gateway's own, never a peer's.
@safe struct Slab<Element: SlabElement & ~Copyable>: ~Copyable {
    private var base: UnsafeMutablePointer<Element>
    private var capacity: Int
    private var initialized = 0
    /// The freed slots, the last one on top; as large as `base`.
    private var freeList: UnsafeMutablePointer<Int32>
    private var freeCount = 0
    /// Number of allocated slots.
    private(set) var count = 0

    init(capacity: Int = 64) {
        unsafe base = .allocate(capacity: capacity)
        unsafe freeList = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    deinit {
        unsafe base.deinitialize(count: initialized)
        unsafe base.deallocate()
        unsafe freeList.deallocate()
    }

    /// One past the highest index ever used.
    var end: Int32 { Int32(initialized) }

    /// Allocates a slot.
    mutating func allocate() -> Int32 {
        count &+= 1
        if freeCount > 0 {
            freeCount &-= 1
            let index = unsafe freeList[freeCount]
            unsafe base[Int(index)].isAlive = true
            return index
        }
        return allocateFresh()
    }

    /// Allocates a slot that was never used.
    @inline(never)
    private mutating func allocateFresh() -> Int32 {
        if initialized == capacity { grow() }
        let index = Int32(initialized)
        unsafe (base + initialized).initialize(to: Element())
        initialized &+= 1
        self[index].isAlive = true
        return index
    }

    /// Frees a slot; its element stays for the next allocation.
    mutating func free(_ index: Int32) {
        precondition(Int(index) < initialized && index >= 0)
        let element = unsafe base + Int(index)
        guard unsafe element.pointee.isAlive else { return }
        unsafe element.pointee.isAlive = false
        unsafe element.pointee.generation = (element.pointee.generation &+ 1) & 0xFF_FFFF
        count &-= 1
        // Only allocated slots are freed, so the list never exceeds the capacity.
        unsafe freeList[freeCount] = index
        freeCount &+= 1
    }

    /// Whether the slot is allocated with that generation.
    @inline(__always)
    func contains(_ index: Int32, _ generation: UInt32) -> Bool {
        guard index >= 0, Int(index) < initialized else { return false }
        return unsafe base[Int(index)].isAlive && base[Int(index)].generation == generation
    }

    subscript(index: Int32) -> Element {
        @inline(__always)
        unsafeAddress {
            precondition(Int(index) < initialized && index >= 0)
            return unsafe UnsafePointer(base + Int(index))
        }
        @inline(__always)
        nonmutating unsafeMutableAddress {
            precondition(Int(index) < initialized && index >= 0)
            return unsafe base + Int(index)
        }
    }

    /// The address of an element, to lend a part of it to another owner; valid until a slot is allocated.
    @inline(__always)
    func address(of index: Int32) -> UnsafeMutablePointer<Element> {
        precondition(Int(index) < initialized && index >= 0)
        return unsafe base + Int(index)
    }

    @inline(never)
    private mutating func grow() {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        unsafe larger.moveInitialize(from: base, count: initialized)
        unsafe base.deallocate()
        unsafe base = larger
        let list = UnsafeMutablePointer<Int32>.allocate(capacity: capacity * 2)
        unsafe list.moveInitialize(from: freeList, count: freeCount)
        unsafe freeList.deallocate()
        unsafe freeList = list
        capacity *= 2
    }
}
