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
        // One more than it holds: a line is read in place before it is known whether it may stay.
        unsafe base = .allocate(capacity: self.capacity &+ 1)
        unsafe base.initialize(repeating: .none, count: self.capacity &+ 1)
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

    /// Reads the line at `index` into the place behind the last field.
    @inline(__always)
    mutating func readLine(_ bytes: Span<UInt8>, at index: Int) -> LineOutcome {
        unsafe FieldLine.read(bytes, at: index, into: &base[count])
    }

    /// Adds the field that `readLine` has read; `false` when the list is full.
    @inline(__always)
    mutating func keepLine() -> Bool {
        guard count < capacity else { return false }
        count &+= 1
        return true
    }

    mutating func markConnectionOption(at index: Int) {
        precondition(index >= 0 && index < count)
        unsafe base[index].isConnectionOption = true
    }

    mutating func removeAll() { count = 0 }
}
