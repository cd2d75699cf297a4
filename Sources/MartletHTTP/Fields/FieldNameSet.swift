/// Field names that mean something special, looked up under folding: letter case aside and `_` and `.` counted as `-`.
///
/// Immutable; made when the configuration is read, asked once per field.
@usableFromInline
package struct FieldNameSet: Sendable {
    private struct Slot {
        var hash: UInt32
        var start: UInt32
        /// 0 where the slot is free.
        var count: UInt32
    }

    private let slots: [Slot]
    /// The folded names, one after the other.
    private let letters: [UInt8]
    /// One bit for each name's length, first and last byte: most other fields of a request are told apart here.
    @usableFromInline let filter: UInt64
    /// One bit for each known field that is in the set.
    @usableFromInline let known: UInt64
    @usableFromInline let reservesAuthPrefix: Bool

    /// - Parameters:
    ///   - names: in any spelling; the empty name is left out.
    ///   - reservesAuthPrefix: whether every name that begins with `x-auth-` belongs to the set, too.
    package init(_ names: [String], reservesAuthPrefix: Bool) {
        var size = 8
        while size < names.count * 2 { size *= 2 }
        var slots = [Slot](repeating: Slot(hash: 0, start: 0, count: 0), count: size)
        var letters: [UInt8] = []
        var filter: UInt64 = 0
        for name in names where !name.isEmpty {
            let bytes = Array(name.utf8)
            let hash = NameHash.of(bytes.span)
            var slot = Int(hash) & (size - 1)
            while slots[slot].count > 0 { slot = (slot + 1) & (size - 1) }
            slots[slot] = Slot(hash: hash, start: UInt32(letters.count), count: UInt32(bytes.count))
            letters += bytes.map(Token.fold)
            filter |= 1 << FieldNameSet.filterBit(bytes.count, bytes[0], bytes[bytes.count - 1])
        }
        var known: UInt64 = 0
        for field in KnownField.allCases where field != .other {
            // Names under folding have no other spelling of a known field's name than its own.
            let name = field.name.description.utf8
            if names.contains(where: { $0.utf8.map(Token.fold) == name.map(Token.fold) }) {
                known |= field.bit
            }
        }
        self.known = known
        self.slots = slots
        self.letters = letters
        self.filter = filter
        self.reservesAuthPrefix = reservesAuthPrefix
    }

    /// Whether there is no name in it.
    package var isEmpty: Bool { letters.isEmpty && !reservesAuthPrefix }

    /// Whether a field of a head or trailer is in the set; `bytes` are those that it was parsed from.
    @inlinable @inline(__always)
    package func contains(_ field: HeadField, in bytes: Span<UInt8>) -> Bool {
        // No known name begins with the prefix.
        if field.known != .other { return known & field.known.bit != 0 }
        return contains(bytes, field.name)
    }

    // Inlined, for a set that is lent to another function has its arrays' references counted.
    @inlinable @inline(__always)
    func contains(_ bytes: Span<UInt8>, _ name: ByteRange) -> Bool {
        guard name.count > 0 else { return false }
        let (first, last) = (bytes[name.start], bytes[name.end &- 1])
        if reservesAuthPrefix, first | 0x20 == UInt8(ascii: "x"), name.count >= 7,
            FieldNameSet.hasAuthPrefix(bytes, name)
        {
            return true
        }
        return filter &>> FieldNameSet.filterBit(name.count, first, last) & 1 != 0 && find(bytes, name)
    }

    /// Whether a name that comes from elsewhere than a parser is in the set.
    package func contains(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        return contains(bytes.span, ByteRange(from: 0, to: bytes.count))
    }

    /// The bit of `filter` for a name: the same for every spelling of it.
    @inlinable @inline(__always)
    static func filterBit(_ count: Int, _ first: UInt8, _ last: UInt8) -> UInt64 {
        // These two bits are the same in `-`, `.` and `_`, and in a letter's two cases.
        let (first, last) = (UInt64(first & 0x0C), UInt64(last & 0x0C))
        return (UInt64(truncatingIfNeeded: count) &+ first &* 4 &+ last &* 7) & 63
    }

    @usableFromInline
    static func hasAuthPrefix(_ bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
        let prefix: StaticString = "x-auth-"
        for offset in 0..<prefix.utf8CodeUnitCount
        where Token.fold(bytes[range.start &+ offset]) != prefix.byte(at: offset) { return false }
        return true
    }

    @inline(never)
    @usableFromInline
    func find(_ bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
        let hash = NameHash.of(bytes.extracting(range.bounds))
        let slots = slots.span
        let letters = letters.span
        var index = Int(hash) & (slots.count &- 1)
        while slots[index].count > 0 {
            let slot = slots[index]
            if slot.hash == hash, Int(slot.count) == range.count {
                var offset = 0
                while offset < range.count,
                    Token.fold(bytes[range.start &+ offset]) == letters[Int(slot.start) &+ offset]
                { offset &+= 1 }
                if offset == range.count { return true }
            }
            index = (index &+ 1) & (slots.count &- 1)
        }
        return false
    }
}
