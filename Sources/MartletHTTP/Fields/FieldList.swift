/// The field lines of one head.
///
/// Its memory is allocated once and reused for every head.
@usableFromInline
@safe package struct FieldList: ~Copyable {
    @usableFromInline let base: UnsafeMutablePointer<HeadField>
    /// How many fields it can hold.
    package let capacity: Int
    @usableFromInline package private(set) var count = 0
    /// One bit for each kind of field that is present.
    @usableFromInline private(set) var kinds: UInt64 = 0
    /// Whether a `Connection` field names one of the fields.
    package private(set) var hasConnectionOptions = false
    let names = KnownNames()

    package init(capacity: Int) {
        self.capacity = max(capacity, 1)
        // One more than `capacity`: a line is parsed in place before it is known whether it fits.
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

    /// Whether there is a field of a kind, spelled exactly.
    @inlinable @inline(__always)
    package func has(_ known: KnownField) -> Bool { kinds & known.bit != 0 }

    /// Whether there is one of the fields in which proxies describe a client.
    @inlinable @inline(__always)
    package var hasForwarding: Bool {
        let bits =
            KnownField.forwarded.bit | KnownField.xForwardedFor.bit | KnownField.xForwardedProto.bit
            | KnownField.xForwardedHost.bit
        return kinds & bits != 0
    }

    /// The index of the first field of a kind, or −1.
    package func firstIndex(of known: KnownField) -> Int {
        guard has(known) else { return -1 }
        var index = 0
        while index < count {
            if self[index].known == known { return index }
            index &+= 1
        }
        return -1
    }

    /// The kind of the field that `readLine` has parsed but not yet appended.
    var pendingKind: KnownField { unsafe base[count].known }

    /// The end of the field that the previous head left after the last one, if it lies within `limit` bytes; else −1.
    @inline(__always)
    func cachedLineEnd(within limit: Int, _ known: inout KnownField) -> Int {
        let end = unsafe base[count].line.end
        guard end <= limit else { return -1 }
        known = unsafe base[count].known
        return end
    }

    /// Appends the field that was parsed last, which is of this kind; `false` when the list is full.
    @inline(__always)
    mutating func appendPending(_ known: KnownField) -> Bool {
        guard count < capacity else { return false }
        kinds |= known.bit
        count &+= 1
        return true
    }

    /// Cuts off the end of the last field's value.
    mutating func shortenLastValue(to end: Int) {
        precondition(count > 0)
        unsafe base[count &- 1].shortenValue(to: end)
    }

    mutating func markConnectionOption(at index: Int) {
        precondition(index >= 0 && index < count)
        unsafe base[index].markConnectionOption()
        hasConnectionOptions = true
    }

    mutating func withhold(at index: Int) {
        precondition(index >= 0 && index < count)
        unsafe base[index].withhold()
    }

    @inline(__always)
    mutating func removeAll() {
        count = 0
        kinds = 0
        hasConnectionOptions = false
    }
}
