/// A set of field names, compared by letters and digits alone (`FieldLetters`); built with the configuration.
@usableFromInline
package struct FieldNameSet: Sendable {
    /// One reference, whatever the names: a set that is passed on is retained once.
    @usableFromInline
    final class Table: Sendable {
        struct Slot {
            var hash: UInt32
            var start: UInt32
            /// 0 where the slot is free.
            var count: UInt32
        }

        let slots: [Slot]
        /// The letters of the names, one name after the other.
        let letters: [UInt8]
        /// The names as given.
        let names: [String]

        /// Whether the name in a slot is that of a field.
        func spells(_ index: Int, _ bytes: Span<UInt8>, _ name: ByteRange) -> Bool {
            let (slot, letters) = (slots[index], letters)
            let range = Int(slot.start)..<Int(slot.start &+ slot.count)
            return FieldLetters.spell(letters.span.extracting(range), bytes, name)
        }

        init(slots: [Slot], letters: [UInt8], names: [String]) {
            self.slots = slots
            self.letters = letters
            self.names = names
        }
    }

    /// What excludes most fields that are not in the set: plain values, which can be copied elsewhere.
    @frozen @usableFromInline
    package struct Filter: Sendable {
        /// A Bloom filter over the first and last letter of each name.
        @usableFromInline let letters: UInt64
        /// One bit for each known field that is in the set.
        @usableFromInline let known: UInt64
        @usableFromInline let reservesAuthPrefix: Bool

        /// Whether a field of a head or trailer may be in the set; known fields are, then.
        @inlinable @inline(__always)
        package func mayContain(_ field: HeadField, in bytes: Span<UInt8>) -> Bool {
            // No known name begins with the prefix.
            if field.known != .other { return known & field.known.bit != 0 }
            return mayContain(bytes, field.name)
        }

        @inlinable @inline(__always)
        func mayContain(_ bytes: Span<UInt8>, _ name: ByteRange) -> Bool {
            guard name.count > 0 else { return false }
            let (first, last) = (bytes[name.start], bytes[name.end &- 1])
            return reservesAuthPrefix || !FieldNameSet.isLetter(first) || !FieldNameSet.isLetter(last)
                || letters &>> FieldNameSet.filterBit(first, last) & 1 != 0
        }
    }

    @usableFromInline let table: Table
    /// Asked before the table.
    @usableFromInline package let filter: Filter
    /// The names as given, without those that have no letter or digit.
    package var names: [String] { table.names }

    /// - Parameters:
    ///   - names: in any spelling; a name without a letter or digit is left out.
    ///   - reservesAuthPrefix: whether every `X-Auth-*` name belongs to the set, too.
    package init(_ names: [String], reservesAuthPrefix: Bool) {
        let given = names.filter { !FieldLetters.of($0).isEmpty }
        var size = 8
        while size < names.count * 2 { size *= 2 }
        var slots = [Table.Slot](repeating: Table.Slot(hash: 0, start: 0, count: 0), count: size)
        var letters: [UInt8] = []
        var filter: UInt64 = 0
        let spelled = given.map { FieldLetters.of($0) }
        for name in spelled {
            let key = FieldLetterKey(name.span, ByteRange(from: 0, to: name.count))
            var slot = Int(key.hash.value) & (size - 1)
            while slots[slot].count > 0 { slot = (slot + 1) & (size - 1) }
            slots[slot] = Table.Slot(hash: key.hash.value, start: UInt32(letters.count), count: UInt32(name.count))
            letters += name
            filter |= 1 << FieldNameSet.filterBit(key.first, key.last)
        }
        var known: UInt64 = 0
        for name in spelled { known |= FieldNameSet.knownFields[name] ?? 0 }
        table = Table(slots: slots, letters: letters, names: given)
        self.filter = Filter(letters: filter, known: known, reservesAuthPrefix: reservesAuthPrefix)
    }

    /// The bits of the known fields, by the letters of their names.
    private static let knownFields = [[UInt8]: UInt64](
        KnownField.allCases.filter { $0 != .other }.map { (FieldLetters.of($0.name.description), $0.bit) },
        uniquingKeysWith: |)

    /// The set with further names.
    package func adding(_ names: [String]) -> FieldNameSet {
        names.isEmpty ? self : FieldNameSet(self.names + names, reservesAuthPrefix: filter.reservesAuthPrefix)
    }

    /// Whether the set has no names.
    package var isEmpty: Bool { table.letters.isEmpty && !filter.reservesAuthPrefix }

    /// Whether a field of a head or trailer is in the set; `bytes` are those that it was parsed from.
    @inlinable @inline(__always)
    package func contains(_ field: HeadField, in bytes: Span<UInt8>) -> Bool {
        filter.mayContain(field, in: bytes)
            && (field.known != .other
                || FieldNameSet.find(bytes, field.name, table, reservesAuthPrefix: filter.reservesAuthPrefix))
    }

    // Inlined: passing the set to another function would retain its arrays.
    @inlinable @inline(__always)
    func contains(_ bytes: Span<UInt8>, _ name: ByteRange) -> Bool {
        filter.mayContain(bytes, name)
            && FieldNameSet.find(bytes, name, table, reservesAuthPrefix: filter.reservesAuthPrefix)
    }

    /// Whether a name that does not come from a parser is in the set.
    package func contains(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        return contains(bytes.span, ByteRange(from: 0, to: bytes.count))
    }

    /// The bit of a filter for a name: the same for both cases of a letter.
    @inlinable @inline(__always)
    static func filterBit(_ first: UInt8, _ last: UInt8) -> UInt64 {
        (UInt64(first & 0x1F) &* 7 &+ UInt64(last & 0x1F)) & 63
    }

    @inlinable @inline(__always)
    static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 }

    @inline(never)
    @usableFromInline
    static func find(_ bytes: Span<UInt8>, _ name: ByteRange, _ table: Table, reservesAuthPrefix: Bool) -> Bool {
        let key = FieldLetterKey(bytes, name)
        let mask = table.slots.count &- 1
        var index = Int(key.hash.value) & mask
        while key.count > 0, table.slots[index].count > 0 {
            if table.slots[index].hash == key.hash.value, table.spells(index, bytes, name) { return true }
            index = (index &+ 1) & mask
        }
        return reservesAuthPrefix && FieldLetters.isAuth(bytes, name)
    }
}
