private import CHeadScan

/// The search for the end of text, in short values and in long ones.
extension Span where Element == UInt8 {
    /// Where the line behind the one at `start` begins, or `count`.
    package func nextLine(from start: Int) -> Int { Swift.min(lineFeed(from: start) &+ 1, count) }

    /// The first byte that is none of `A–Z a–z 0–9 - . _ /`, or `count`.
    package func endOfTokenText() -> Int { endOfTokenText(from: 0) }

    /// Whether these are the bytes of a text.
    package func isEqual(to text: Span<UInt8>) -> Bool {
        guard count == text.count else { return false }
        return unsafe withUnsafeBufferPointer { left in
            unsafe text.withUnsafeBufferPointer { right in
                unsafe martlet_same(left.baseAddress, right.baseAddress, left.count)
            }
        }
    }

    /// The first byte from `start` on that is not 0x20–0x7E, or `count`; made for texts of up to 32 bytes.
    @inline(__always)
    func endOfShortText(from start: Int) -> Int {
        var index = start
        if hasBlock(at: index) {
            let stops = laneBits(ASCII.areNoText(block(at: index)))
            if stops != 0 { return index &+ stops.trailingZeroBitCount }
            index &+= 16
            if hasBlock(at: index) {
                let stops = laneBits(ASCII.areNoText(block(at: index)))
                if stops != 0 { return index &+ stops.trailingZeroBitCount }
                index &+= 16
            }
        }
        return endOfText(from: index)
    }

    /// The first byte from `start` on that is not 0x20–0x7E, or `count`.
    @inline(never)
    package func endOfText(from start: Int) -> Int {
        var index = start
        if count >= 192, UInt(bitPattern: index) <= UInt(bitPattern: count &- 192) {
            let stops = laneBits(ASCII.areNoText(block(at: index)))
            if stops != 0 { return index &+ stops.trailingZeroBitCount }
            index = endOfLongText(from: index)
        }
        while hasBlock(at: index) {
            let stops = laneBits(ASCII.areNoText(block(at: index)))
            if stops != 0 { return index &+ stops.trailingZeroBitCount }
            index &+= 16
        }
        guard index < count else { return count }
        guard count >= 16 else { return index &+ firstMatch(ASCII.areNoText(tailBlock(at: index))) }
        // The last block again, without the bytes searched already.
        let last = count &- 16
        let stops = laneBits(ASCII.areNoText(block(at: last))) &>> UInt32(truncatingIfNeeded: index &- last)
        return stops != 0 ? index &+ stops.trailingZeroBitCount : count
    }

    /// The first byte from `start` on that is `byte`, or `end`, which is not after the last byte.
    @inline(__always)
    func first(_ byte: UInt8, from start: Int, to end: Int) -> Int {
        let wanted = SIMD16<Int8>(repeating: Int8(bitPattern: byte))
        var index = start
        while index < end, hasBlock(at: index) {
            let found = firstMatch(block(at: index) .== wanted)
            if found < 16 { return Swift.min(index &+ found, end) }
            index &+= 16
        }
        while index < end, self[index] != byte { index &+= 1 }
        return Swift.min(index, end)
    }

    /// The offset after whole runs of 128 bytes of text from `start` on.
    ///
    /// The sixteen bytes at `start` are text. Blocks are aligned to sixteen bytes, so instructions can use them as
    /// memory operands.
    @inline(__always)
    private func endOfLongText(from start: Int) -> Int {
        precondition(start >= 0 && start <= count &- 16)
        return unsafe withUnsafeBytes { memory in
            guard let base = memory.baseAddress else { return start }
            let block = unsafe (base + start + 16).alignedDown(toMultipleOf: 16)
            return unsafe martlet_end_of_text(block, base + memory.count) - base
        }
    }
}
