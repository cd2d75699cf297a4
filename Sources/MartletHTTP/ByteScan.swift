private import CHeadScan

/// The scans that the parsers of this module share, sixteen or eight bytes at a time.
extension Span where Element == UInt8 {
    /// Eight bytes, the first one lowest.
    @inline(__always)
    func word(at index: Int) -> UInt64 {
        precondition(index >= 0 && index <= count &- 8)
        return unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: UInt64.self)
    }

    @inline(__always)
    func half(at index: Int) -> UInt32 {
        precondition(index >= 0 && index <= count &- 4)
        return unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: UInt32.self)
    }

    @inline(__always)
    func quarter(at index: Int) -> UInt16 {
        precondition(index >= 0 && index <= count &- 2)
        return unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: UInt16.self)
    }

    /// Whether `index` is in bounds and holds `byte`.
    @inline(__always)
    func has(_ byte: UInt8, at index: Int) -> Bool {
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { return false }
        return unsafe self[unchecked: index] == byte
    }

    /// Whether `index` is in bounds and holds a space or tab.
    @inline(__always)
    func hasBlank(at index: Int) -> Bool {
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { return false }
        return ASCII.isBlank(unsafe self[unchecked: index])
    }

    /// Whether `index` is in bounds and holds CRLF.
    @inline(__always)
    func hasLineEnd(at index: Int) -> Bool {
        guard count >= 2, UInt(bitPattern: index) <= UInt(bitPattern: count &- 2) else { return false }
        return unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: UInt16.self) == 0x0A0D
    }

    /// Whether sixteen bytes are in bounds; written so that the compiler merges it with the check in `block`.
    @inline(__always)
    func hasBlock(at index: Int) -> Bool {
        count >= 16 && UInt(bitPattern: index) <= UInt(bitPattern: count &- 16)
    }

    /// Sixteen bytes as signed numbers, so that one comparison finds control bytes and bytes over 0x7F.
    @inline(__always)
    func block(at index: Int) -> SIMD16<Int8> {
        precondition(hasBlock(at: index))
        return unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: SIMD16<Int8>.self)
    }

    /// The fewer than sixteen bytes from `index` to the end, then zeros.
    @inline(never)
    func tailBlock(at index: Int) -> SIMD16<Int8> {
        let left = count &- index
        precondition(index >= 0 && left >= 0 && left < 16)
        guard count >= 16 else { return shortBlock(at: index) }
        let last = unsafe unsafeBitCast(block(at: count &- 16), to: SIMD2<UInt64>.self)
        let surplus = (16 &- left) &* 8
        let words = SIMD2(last[0] >> surplus | last[1] << (64 &- surplus), last[1] >> surplus)
        return unsafe unsafeBitCast(words, to: SIMD16<Int8>.self)
    }

    /// The same where there are fewer than sixteen bytes in all.
    @inline(__always)
    private func shortBlock(at index: Int) -> SIMD16<Int8> {
        let left = count &- index
        var words = SIMD2<UInt64>()
        if left >= 8 {
            words[0] = word(at: index)
            words[1] = word(at: count &- 8) >> ((16 &- left) &* 8)
        } else if left >= 4 {
            words[0] = UInt64(half(at: index)) | UInt64(half(at: count &- 4)) << ((left &- 4) &* 8)
        } else if left > 0 {
            words[0] = UInt64(self[index]) | UInt64(self[index &+ left / 2]) << (left / 2 &* 8)
            words[0] |= UInt64(self[count &- 1]) << ((left &- 1) &* 8)
        }
        return unsafe unsafeBitCast(words, to: SIMD16<Int8>.self)
    }

    /// The first byte from `start` on that is not 0x21–0x7E or is `#` or `?`, or `count`.
    @inline(__always)
    func endOfTargetPart(from start: Int) -> Int {
        var index = start
        while hasBlock(at: index) {
            let block = block(at: index)
            let stops =
                (block .<= ASCII.space) .| (block .== ASCII.delete) .| (block .== ASCII.hash)
                .| (block .== ASCII.question)
            let found = firstMatch(stops)
            if found < 16 { return index &+ found }
            index &+= 16
        }
        while index < count {
            let byte = self[index]
            if byte <= 0x20 || byte >= 0x7F || byte == UInt8(ascii: "#") || byte == UInt8(ascii: "?") { break }
            index &+= 1
        }
        return index
    }

    /// Whether every byte of a path represents itself: no `%`, `\`, or byte that no target may hold, and no `/` before
    /// `/` or `.`.
    @inline(__always)
    var isPlainPath: Bool {
        guard count >= 16 else {
            return Span.plainPathFaults(shortBlock(at: 0)) & (1 &<< UInt32(truncatingIfNeeded: count) &- 1) == 0
        }
        var index = 0
        while hasBlock(at: index), Span.plainPathFaults(block(at: index)) == 0 {
            if index == count &- 16 { return true }
            // Each block begins with the last byte of the one before it; the last one ends where the path does.
            index = Swift.min(index &+ 15, count &- 16)
        }
        return false
    }

    @inline(__always)
    private static func plainPathFaults(_ block: SIMD16<Int8>) -> UInt32 {
        let outside = (block .<= ASCII.space) .| (block .== ASCII.delete) .| (block .== ASCII.hash)
        let special = (block .== ASCII.question) .| (block .== ASCII.percent) .| (block .== ASCII.backslash)
        let slashes = laneBits(block .== ASCII.slash)
        return laneBits(outside .| special) | slashes & (slashes | laneBits(block .== ASCII.dot)) &>> 1
    }

    /// The first byte from `start` on that is none of `A–Z a–z 0–9 - _ ~ .`, or the first of two dots, or `count`.
    @inline(__always)
    func endOfLabels(from start: Int) -> Int {
        var index = start
        while hasBlock(at: index &+ 1) {
            let block = block(at: index)
            let dot = block .== ASCII.dot
            let member =
                ASCII.areNameCharacters(block) .| dot .| (block .== ASCII.underscore) .| (block .== ASCII.tilde)
            let found = firstMatch(.!member .| (dot .& (self.block(at: index &+ 1) .== ASCII.dot)))
            if found < 16 { return index &+ found }
            index &+= 16
        }
        while index < count, PathByte.isUnreserved(self[index]) {
            if self[index] == UInt8(ascii: "."), index &+ 1 < count, self[index &+ 1] == UInt8(ascii: ".") { break }
            index &+= 1
        }
        return index
    }

    /// The first byte from `start` on that is none of `A–Z a–z 0–9 - . _ ~ + /`, or `count`.
    @inline(__always)
    func endOfToken68(from start: Int) -> Int {
        var index = start
        while true {
            index = endOfTokenText(from: index)
            // Rare in tokens.
            guard index < count, self[index] == UInt8(ascii: "+") || self[index] == UInt8(ascii: "~") else {
                return index
            }
            index &+= 1
        }
    }

    /// The first byte from `start` on that is none of `A–Z a–z 0–9 - . _ /`, or `count`.
    @inline(__always)
    func endOfTokenText(from start: Int) -> Int {
        var index = start
        while hasBlock(at: index) {
            let found = firstMatch(.!Span.areTokenText(block(at: index)))
            if found < 16 { return index &+ found }
            index &+= 16
        }
        return index < count ? index &+ firstMatch(.!Span.areTokenText(tailBlock(at: index))) : count
    }

    @inline(__always)
    private static func areTokenText(_ block: SIMD16<Int8>) -> SIMDMask<SIMD16<Int8>> {
        let lower = block | ASCII.caseBit
        let letter = (lower .>= ASCII.a) .& (lower .<= ASCII.z)
        // `-`, `.`, `/` and the digits are neighbors.
        let number = (block .>= ASCII.dash) .& (block .<= ASCII.nine)
        return letter .| number .| (block .== ASCII.underscore)
    }

    /// The first LF from `start` on, or `count`.
    @inline(__always)
    func lineFeed(from start: Int) -> Int {
        var index = start
        while hasBlock(at: index) {
            let found = firstMatch(block(at: index) .== ASCII.lineFeed)
            if found < 16 { return index &+ found }
            index &+= 16
        }
        while index < count, self[index] != UInt8(ascii: "\n") { index &+= 1 }
        return index
    }

    /// Whether `range` spells `text`, which is lower case, in any letter case.
    ///
    /// Exact for texts of letters, digits and dashes where the bytes hold no control bytes: setting bit 0x20 maps
    /// only a letter's two cases onto one of these.
    @inline(__always)
    func spells(_ text: StaticString, _ range: ByteRange) -> Bool {
        let length = text.utf8CodeUnitCount
        return range.count == length && spells(text, at: range.start)
    }

    /// Whether the bytes at `start` spell `text` in any letter case; as many bytes as the text has must be there.
    @inline(__always)
    func spells(_ text: StaticString, at start: Int) -> Bool {
        let length = text.utf8CodeUnitCount
        if length >= 8 {
            let bit: UInt64 = 0x2020_2020_2020_2020
            if word(at: start) | bit != text.word(at: 0) | bit { return false }
            if length > 16, word(at: start &+ 8) | bit != text.word(at: 8) | bit { return false }
            return word(at: start &+ length &- 8) | bit == text.word(at: length &- 8) | bit
        }
        if length >= 4 {
            let bit: UInt32 = 0x2020_2020
            if half(at: start) | bit != text.half(at: 0) | bit { return false }
            return half(at: start &+ length &- 4) | bit == text.half(at: length &- 4) | bit
        }
        let bit: UInt16 = 0x2020
        if quarter(at: start) | bit != text.quarter(at: 0) | bit { return false }
        return quarter(at: start &+ length &- 2) | bit == text.quarter(at: length &- 2) | bit
    }

    /// Whether two ranges hold the same bytes, ASCII letters in any case.
    func sameIgnoringCase(_ left: ByteRange, _ right: ByteRange) -> Bool {
        guard left.count == right.count else { return false }
        for offset in 0..<left.count
        where ASCII.lowered(self[left.start &+ offset]) != ASCII.lowered(self[right.start &+ offset]) { return false }
        return true
    }
}

/// One bit per lane, the first one lowest; what lies above the sixteen is zero.
@inline(__always)
func laneBits(_ mask: SIMDMask<SIMD16<Int8>>) -> UInt32 {
    highestBits(unsafe unsafeBitCast(mask, to: SIMD16<Int8>.self))
}

/// The highest bit of each lane, likewise.
@inline(__always)
func highestBits(_ block: SIMD16<Int8>) -> UInt32 { martlet_lane_bits(block) }

/// The index of the first lane that is set, or 16.
@inline(__always)
func firstMatch(_ mask: SIMDMask<SIMD16<Int8>>) -> Int { (laneBits(mask) | 0x1_0000).trailingZeroBitCount }

extension StaticString {
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        precondition(offset >= 0 && offset <= utf8CodeUnitCount &- 8)
        return unsafe UnsafeRawPointer(utf8Start).loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }

    @inline(__always)
    func half(at offset: Int) -> UInt32 {
        precondition(offset >= 0 && offset <= utf8CodeUnitCount &- 4)
        return unsafe UnsafeRawPointer(utf8Start).loadUnaligned(fromByteOffset: offset, as: UInt32.self)
    }

    @inline(__always)
    func quarter(at offset: Int) -> UInt16 {
        precondition(offset >= 0 && offset <= utf8CodeUnitCount &- 2)
        return unsafe UnsafeRawPointer(utf8Start).loadUnaligned(fromByteOffset: offset, as: UInt16.self)
    }

    /// The eight bytes from `offset` on, zeros where the text has ended.
    @inline(__always)
    func paddedWord(at offset: Int) -> UInt64 {
        let left = utf8CodeUnitCount &- offset
        if left >= 8 { return word(at: offset) }
        if left >= 4 {
            let last = UInt64(half(at: utf8CodeUnitCount &- 4))
            return UInt64(half(at: offset)) | last &<< UInt64(truncatingIfNeeded: (left &- 4) &* 8)
        }
        if left >= 2 {
            let last = UInt64(quarter(at: utf8CodeUnitCount &- 2))
            return UInt64(quarter(at: offset)) | last &<< UInt64(truncatingIfNeeded: (left &- 2) &* 8)
        }
        return left == 1 ? UInt64(byte(at: offset)) : 0
    }
}
