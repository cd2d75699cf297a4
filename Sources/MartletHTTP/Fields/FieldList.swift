/// The field lines of one head.
///
/// Its memory is allocated once and serves every head after that.
@usableFromInline
@safe package struct FieldList: ~Copyable {
    @usableFromInline let base: UnsafeMutablePointer<HeadField>
    /// How many fields it can hold.
    package let capacity: Int
    @usableFromInline package private(set) var count = 0

    package init(capacity: Int) {
        self.capacity = max(capacity, 1)
        unsafe base = .allocate(capacity: self.capacity)
    }

    deinit { unsafe base.deallocate() }

    package subscript(index: Int) -> HeadField {
        @inlinable @inline(__always) get {
            precondition(index >= 0 && index < count)
            return unsafe base[index]
        }
    }

    /// The index of the first field of a kind, or −1.
    package func firstIndex(of known: KnownField) -> Int {
        var index = 0
        while index < count {
            if self[index].known == known { return index }
            index &+= 1
        }
        return -1
    }

    /// Adds a field; `false` when the list is full.
    @inline(__always)
    mutating func append(_ field: HeadField) -> Bool {
        guard count < capacity else { return false }
        unsafe (base + count).initialize(to: field)
        count &+= 1
        return true
    }

    mutating func markConnectionOption(at index: Int) {
        precondition(index >= 0 && index < count)
        unsafe base[index].isConnectionOption = true
    }

    mutating func removeAll() { count = 0 }
}
