/// Maps field names to numbers, compared by letters and digits (`FieldLetters`).
///
/// Immutable; built with a configuration, queried once per field. Most names are excluded by their first and last
/// letter and their length, because no spelling of a name in the table is shorter than its letters.
@usableFromInline
@safe package struct FieldNameTable: ~Copyable, @unchecked Sendable {
    // @unchecked Sendable: the memory is written by the initializer alone.
    private struct Slot {
        var hash: UInt32
        var start: UInt32
        /// 0 where the slot is free.
        var count: UInt16
        var value: UInt8
    }

    /// The numbers of names with the prefix of a family; 0 where the family has none.
    package struct Families: Sendable {
        /// `X-Auth-*`.
        let authentication: UInt8
        /// `X-Forwarded-*`.
        let forwarding: UInt8

        package init(authentication: UInt8, forwarding: UInt8) {
            self.authentication = authentication
            self.forwarding = forwarding
        }
    }

    /// For each pair of a first and a last letter the shortest name with them, 255 where there is none; followed by the
    /// numbers of the known fields.
    @usableFromInline let base: UnsafeMutablePointer<UInt8>
    private let families: Families
    private let slots: [Slot]
    private let letters: [UInt8]

    @usableFromInline static var pairs: Int { 32 * 32 }
    private static var size: Int { pairs + 64 }

    /// - Parameters:
    ///   - known: the number of each known field that has one, by its exact name; the others have 0.
    ///   - names: in any spelling; of two with the same letters the last one counts. A number of 0 takes a name out of
    ///     its family.
    package init(known: [(KnownField, UInt8)], names: [(name: String, value: UInt8)], families: Families) {
        unsafe base = .allocate(capacity: FieldNameTable.size)
        unsafe base.initialize(repeating: 255, count: FieldNameTable.pairs)
        unsafe (base + FieldNameTable.pairs).initialize(repeating: 0, count: 64)
        self.families = families
        for (field, value) in known { unsafe base[FieldNameTable.pairs + Int(field.rawValue)] = value }
        let entries = Dictionary(names.map { (FieldLetters.of($0.name), $0.value) }) { _, last in last }
        var size = 8
        while size < entries.count * 2 { size *= 2 }
        var slots = [Slot](repeating: Slot(hash: 0, start: 0, count: 0, value: 0), count: size)
        var letters: [UInt8] = []
        for (name, value) in entries where (1...65_535).contains(name.count) {
            let key = FieldLetterKey(name.span, ByteRange(from: 0, to: name.count))
            var slot = Int(key.hash.value) & (size - 1)
            while slots[slot].count > 0 { slot = (slot + 1) & (size - 1) }
            slots[slot] = Slot(
                hash: key.hash.value, start: UInt32(letters.count), count: UInt16(name.count), value: value)
            letters += name
            let pair = FieldNameTable.pair(key.first, key.last)
            unsafe base[pair] = min(unsafe base[pair], UInt8(truncatingIfNeeded: min(name.count, 254)))
        }
        self.slots = slots
        self.letters = letters
    }

    deinit { unsafe base.deallocate() }

    /// The number of a field of a head or trailer, 0 where it has none; `bytes` are those that it was parsed from.
    @inlinable @inline(__always)
    package func value(of field: HeadField, in bytes: Span<UInt8>) -> UInt8 {
        let code = Int(field.known.code)
        if code != 0 { return unsafe base[FieldNameTable.pairs &+ code] }
        let name = field.name
        guard !field.isUnusual, name.count > 2, name.end <= bytes.count else { return find(bytes, name) }
        let first = unsafe bytes[unchecked: name.start]
        let last = unsafe bytes[unchecked: name.end &- 1]
        if first | 0x20 == UInt8(ascii: "x") {
            // Other names with an `x` are looked up like all others.
            let second = unsafe bytes[unchecked: name.start &+ 2] | 0x20
            let isInFamily = second == UInt8(ascii: "a") || second == UInt8(ascii: "f") || second == 0x2D
            if unsafe isInFamily || bytes[unchecked: name.start &+ 1] != 0x2D { return find(bytes, name) }
        }
        let isPlain = first != 0x2D && last != 0x2D
        if isPlain, unsafe Int(base[FieldNameTable.pair(first, last)]) > name.count { return 0 }
        return find(bytes, name)
    }

    /// The number of any name.
    @inline(never)
    @usableFromInline
    package func find(_ bytes: Span<UInt8>, _ name: ByteRange) -> UInt8 {
        let key = FieldLetterKey(bytes, name)
        if key.count > 0, unsafe Int(base[FieldNameTable.pair(key.first, key.last)]) <= key.count {
            var index = Int(key.hash.value) & (slots.count &- 1)
            while slots[index].count > 0 {
                let slot = slots[index]
                if slot.hash == key.hash.value, Int(slot.count) == key.count,
                    FieldLetters.spell(
                        letters.span.extracting(Int(slot.start)..<Int(slot.start) + Int(slot.count)), bytes, name)
                {
                    return slot.value
                }
                index = (index &+ 1) & (slots.count &- 1)
            }
        }
        if families.authentication != 0, FieldLetters.isAuth(bytes, name) { return families.authentication }
        if families.forwarding != 0, FieldLetters.areForwarded(bytes, name) { return families.forwarding }
        return 0
    }

    @inlinable @inline(__always)
    static func pair(_ first: UInt8, _ last: UInt8) -> Int { Int(first & 31) &* 32 &+ Int(last & 31) }
}
