/// Connections and exchanges in one block of memory, reached by handles: no objects, no reference counts.
///
/// A freed slot is allocated again only after ``reclaim()``: until then its handle reaches what is left of its element,
/// and never another one. A handle that is used later than that is a bug, which traps in debug builds.
///
/// An index out of range traps: indices are the gateway's own, never a peer's.
@safe struct Slab<Element: SlabElement & ~Copyable>: ~Copyable {
    private var base: UnsafeMutablePointer<Element>
    private var capacity: Int
    private var initialized = 0
    /// The slots that are not allocated: first the free ones, the last one on top, then the retired ones; as large as
    /// `base`.
    private var vacant: UnsafeMutablePointer<Int32>
    private var vacantCount = 0
    private var freeCount = 0

    init(capacity: Int = 64) {
        unsafe base = .allocate(capacity: capacity)
        unsafe vacant = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    deinit {
        unsafe base.deinitialize(count: initialized)
        unsafe base.deallocate()
        unsafe vacant.deallocate()
    }

    /// Number of allocated slots.
    var count: Int { initialized &- vacantCount }

    /// Number of slots that were freed since the last ``reclaim()``.
    @inline(__always)
    var retiredCount: Int { vacantCount &- freeCount }

    /// One past the highest index ever used.
    var end: Int32 { Int32(initialized) }

    /// Allocates a slot.
    mutating func allocate() -> Handle<Element> {
        guard freeCount > 0 else { return allocateFresh() }
        freeCount &-= 1
        vacantCount &-= 1
        let index = unsafe vacant[freeCount]
        // One of the retired slots closes the gap, if there are any.
        unsafe vacant[freeCount] = vacant[vacantCount]
        let element = unsafe base + Int(index)
        unsafe element.pointee.isAlive = true
        return Handle(index: index, generation: unsafe element.pointee.generation)
    }

    /// Allocates a slot that was never used.
    @inline(never)
    private mutating func allocateFresh() -> Handle<Element> {
        if initialized == capacity { grow() }
        let element = unsafe base + initialized
        unsafe element.initialize(to: Element())
        unsafe element.pointee.isAlive = true
        let handle = Handle<Element>(index: Int32(initialized), generation: unsafe element.pointee.generation)
        initialized &+= 1
        return handle
    }

    /// Retires a slot; its element stays for the next allocation.
    mutating func free(_ handle: Handle<Element>) {
        let element = unsafe address(of: handle)
        guard unsafe element.pointee.isAlive && element.pointee.generation == handle.generation else { return }
        unsafe element.pointee.isAlive = false
        unsafe element.pointee.generation = Self.generation(after: handle)
        // Only allocated slots are freed, so the list never exceeds the capacity.
        unsafe vacant[vacantCount] = handle.index
        vacantCount &+= 1
    }

    /// Frees the retired slots; call it when nothing on the stack holds a handle.
    mutating func reclaim() { freeCount = vacantCount }

    /// Whether the handle's element is still allocated.
    @inline(__always)
    func contains(_ handle: Handle<Element>) -> Bool {
        guard handle.offset < initialized else { return false }
        return unsafe base[handle.offset].isAlive && base[handle.offset].generation == handle.generation
    }

    /// The handle of the element that is allocated in a slot; `nil` when there is none.
    @inline(__always)
    func handle(at index: Int32) -> Handle<Element>? {
        guard Int(index) < initialized, index >= 0, unsafe base[Int(index)].isAlive else { return nil }
        return Handle(index: index, generation: unsafe base[Int(index)].generation)
    }

    /// Changes every element, those of free slots too.
    mutating func updateAll(_ change: (inout Element) -> Void) {
        for index in 0..<initialized { unsafe change(&base[index]) }
    }

    subscript(handle: Handle<Element>) -> Element {
        @inline(__always)
        unsafeAddress { unsafe UnsafePointer(address(of: handle)) }
        @inline(__always)
        unsafeMutableAddress { unsafe address(of: handle) }
    }

    /// The address of an element, to lend a part of it to another owner; valid until a slot is allocated.
    @inline(__always)
    func address(of handle: Handle<Element>) -> UnsafeMutablePointer<Element> {
        precondition(handle.offset < initialized)
        let element = unsafe base + handle.offset
        assert(unsafe Self.isOwn(element, handle), "a handle was used after its slot had been reclaimed")
        return unsafe element
    }

    /// Whether the slot was not allocated again since the handle was made.
    private static func isOwn(_ element: UnsafeMutablePointer<Element>, _ handle: Handle<Element>) -> Bool {
        let generation = unsafe element.pointee.generation
        return unsafe generation == handle.generation
            || !element.pointee.isAlive && generation == Self.generation(after: handle)
    }

    /// An ``EventToken`` has 24 bits for it.
    private static func generation(after handle: Handle<Element>) -> UInt32 { (handle.generation &+ 1) & 0xFF_FFFF }

    @inline(never)
    private mutating func grow() {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        unsafe larger.moveInitialize(from: base, count: initialized)
        unsafe base.deallocate()
        unsafe base = larger
        let list = UnsafeMutablePointer<Int32>.allocate(capacity: capacity * 2)
        unsafe list.moveInitialize(from: vacant, count: vacantCount)
        unsafe vacant.deallocate()
        unsafe vacant = list
        capacity *= 2
    }
}
