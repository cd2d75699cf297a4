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
    /// One bit per name's hash: most fields of a request are told apart here.
    @usableFromInline let filter: UInt64
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
            let hash = NameHash.of(bytes)
            var slot = Int(hash) & (size - 1)
            while slots[slot].count > 0 { slot = (slot + 1) & (size - 1) }
            slots[slot] = Slot(hash: hash, start: UInt32(letters.count), count: UInt32(bytes.count))
            letters += bytes.map(Token.fold)
            filter |= 1 << UInt64(hash >> 26)
        }
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
        contains(bytes, field.name, hash: field.nameHash)
    }

    /// Whether the name at `range` is in the set; `hash` is its `HeadField.nameHash`.
    @inlinable @inline(__always)
    package func contains(_ bytes: Span<UInt8>, _ range: ByteRange, hash: UInt32) -> Bool {
        if reservesAuthPrefix, range.count >= 7, bytes[range.start] | 0x20 == UInt8(ascii: "x"),
            FieldNameSet.hasAuthPrefix(bytes, range)
        {
            return true
        }
        return filter &>> UInt64(hash &>> 26) & 1 != 0 && find(bytes, range, hash: hash)
    }

    /// Whether a name that comes from elsewhere than a parser is in the set.
    package func contains(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        return contains(bytes.span, ByteRange(from: 0, to: bytes.count), hash: NameHash.of(bytes))
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
    func find(_ bytes: Span<UInt8>, _ range: ByteRange, hash: UInt32) -> Bool {
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
