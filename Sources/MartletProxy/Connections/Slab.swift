/// What a slab holds: something that knows whether its place is taken and by which of its tenants.
protocol SlabElement: ~Copyable {
    /// A fresh element for a place; called once per place, the element is then reused.
    init()
    /// Counts the tenants of the place, so that a late event of an earlier one is told apart.
    var generation: UInt32 { get set }
    var isAlive: Bool { get set }
}

/// Connections and exchanges side by side in one piece of memory, reached by index: no object, no reference count.
///
/// An index that is out of range traps: indices are ours, never a peer's.
@safe struct Slab<Element: SlabElement & ~Copyable>: ~Copyable {
    private var base: UnsafeMutablePointer<Element>
    private var capacity: Int
    private var initialized = 0
    /// The places that were given back, the last one on top; as large as `base`.
    private var free: UnsafeMutablePointer<Int32>
    private var freeCount = 0
    /// Places that are taken.
    private(set) var count = 0

    init(capacity: Int = 64) {
        unsafe base = .allocate(capacity: capacity)
        unsafe free = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    deinit {
        unsafe base.deinitialize(count: initialized)
        unsafe base.deallocate()
        unsafe free.deallocate()
    }

    /// One past the highest index ever used.
    var end: Int32 { Int32(initialized) }

    /// Takes a place.
    mutating func take() -> Int32 {
        count &+= 1
        if freeCount > 0 {
            freeCount &-= 1
            let index = unsafe free[freeCount]
            unsafe base[Int(index)].isAlive = true
            return index
        }
        return takeFresh()
    }

    /// Takes a place that nobody had.
    @inline(never)
    private mutating func takeFresh() -> Int32 {
        if initialized == capacity { grow() }
        let index = Int32(initialized)
        unsafe (base + initialized).initialize(to: Element())
        initialized &+= 1
        self[index].isAlive = true
        return index
    }

    /// Gives a place back; its element stays for the next tenant.
    mutating func give(_ index: Int32) {
        precondition(Int(index) < initialized && index >= 0)
        let element = unsafe base + Int(index)
        guard unsafe element.pointee.isAlive else { return }
        unsafe element.pointee.isAlive = false
        unsafe element.pointee.generation = (element.pointee.generation &+ 1) & 0xFF_FFFF
        count &-= 1
        // Only places that are taken come here, so there are never more free ones than places.
        unsafe free[freeCount] = index
        freeCount &+= 1
    }

    /// Whether the index is taken by just that tenant.
    @inline(__always)
    func holds(_ index: Int32, _ generation: UInt32) -> Bool {
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

    @inline(never)
    private mutating func grow() {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        unsafe larger.moveInitialize(from: base, count: initialized)
        unsafe base.deallocate()
        unsafe base = larger
        let list = UnsafeMutablePointer<Int32>.allocate(capacity: capacity * 2)
        unsafe list.moveInitialize(from: free, count: freeCount)
        unsafe free.deallocate()
        unsafe free = list
        capacity *= 2
    }
}
