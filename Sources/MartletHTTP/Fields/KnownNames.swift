/// The names of all known fields, laid out for comparison with the first bytes of a line.
///
/// A perfect hash of the length and the last two letters gives the only candidate; one block comparison decides.
@safe struct KnownNames: ~Copyable {
    /// Two to fifteen bytes are looked up in one block, more in two, both with their colon.
    static let longest = 30
    private static let slots = 128
    /// Found by search: it gives every name its own slot.
    private static let multiplier: UInt32 = 0x2021_0341

    /// First one byte per slot, the code of its field.
    ///
    /// Then four blocks for each field: for either half of its name a mask to OR, and the expected result.
    private let table: UnsafeMutableRawPointer

    init() {
        let rows = KnownField.allCases.count * 4
        unsafe table = .allocate(byteCount: KnownNames.slots + rows * 16, alignment: 16)
        unsafe table.initializeMemory(as: UInt8.self, repeating: 0, count: KnownNames.slots + rows * 16)
        // A row that nothing matches: no name is `other`.
        for offset in 0..<16 {
            unsafe table.storeBytes(of: 0xFF, toByteOffset: KnownNames.slots + offset, as: UInt8.self)
        }
        for field in KnownField.allCases where field != .other { add(field) }
    }

    deinit { unsafe table.deallocate() }

    private func add(_ field: KnownField) {
        let count = field.name.utf8CodeUnitCount
        precondition(count >= 2 && count <= KnownNames.longest)
        for offset in 0..<32 {
            let index = KnownNames.slots + Int(field.rawValue) * 64 + offset / 16 * 32 + offset % 16
            // The colon is part of the comparison: another name may lead to the same slot, and begin with this one.
            let byte =
                offset < count ? field.name.byte(at: offset) : offset == count ? UInt8(ascii: ":") : 0xFF
            // Bit 0x20 is the case of a letter; after the colon every byte matches.
            let added: UInt8 = offset > count ? 0xFF : byte >= 0x61 ? 0x20 : 0
            unsafe table.storeBytes(of: added, toByteOffset: index, as: UInt8.self)
            unsafe table.storeBytes(of: byte, toByteOffset: index + 16, as: UInt8.self)
        }
        let end = UInt16(field.name.byte(at: count - 1)) << 8 | UInt16(field.name.byte(at: count - 2))
        let slot = KnownNames.slot(count, end)
        precondition(unsafe table.load(fromByteOffset: slot, as: UInt8.self) == 0)
        unsafe table.storeBytes(of: field.rawValue, toByteOffset: slot, as: UInt8.self)
    }

    @inline(__always)
    private static func slot(_ count: Int, _ end: UInt16) -> Int {
        let key = UInt32(end | 0x2020) | UInt32(truncatingIfNeeded: count) &<< 16
        return Int((key &* multiplier) &>> 25)
    }

    @inline(__always)
    private func spells(_ block: SIMD16<Int8>, _ code: UInt8, half: Int) -> Bool {
        let row = unsafe table + KnownNames.slots + Int(code) &* 64 + half &* 32
        let added = unsafe row.load(as: SIMD16<Int8>.self)
        return unsafe laneBits((block | added) .== row.load(fromByteOffset: 16, as: SIMD16<Int8>.self)) == 0xFFFF
    }

    @inline(__always)
    private func candidate(_ count: Int, _ end: UInt16) -> UInt8 {
        unsafe table.load(fromByteOffset: KnownNames.slot(count, end), as: UInt8.self)
    }

    /// The field that the first `count` bytes of `block`, at most fifteen and then a colon, spell in any letter case.
    ///
    /// - Parameter end: the last two of them.
    @inline(__always)
    func field(_ block: SIMD16<Int8>, count: Int, end: UInt16) -> KnownField? {
        let code = candidate(count, end)
        return spells(block, code, half: 0) ? KnownField(code: code) : nil
    }

    /// The same for the first `count` bytes of two blocks, at least sixteen and then a colon.
    @inline(__always)
    func field(_ first: SIMD16<Int8>, _ second: SIMD16<Int8>, count: Int, end: UInt16) -> KnownField? {
        let code = candidate(count, end)
        return spells(first, code, half: 0) && spells(second, code, half: 1) ? KnownField(code: code) : nil
    }
}
