extension FieldList {
    /// Reads a line of the usual kind at `start` into the place behind the last field.
    ///
    /// Usual is a name of letters, digits and dashes, a space, and text without white space at its end.
    ///
    /// - Parameter known: becomes the field's kind.
    /// - Returns: where the next line begins; 0 for the empty line; or −1: then `readLine` has to look.
    @inline(__always)
    mutating func readUsualLine(_ bytes: Span<UInt8>, at start: Int, _ known: inout KnownField) -> Int {
        guard bytes.hasBlock(at: start) else { return -1 }
        let colon = endOfShortName(bytes, at: start, bytes.block(at: start), &known)
        guard colon >= 0 else { return bytes.hasLineEnd(at: start) ? 0 : -1 }
        let text = colon &+ 2
        // All before `text` is there by now, and `end` lies behind a byte at `text`.
        guard UInt(bitPattern: text) < UInt(bitPattern: bytes.count), unsafe bytes[unchecked: text &- 1] == 0x20,
            unsafe bytes[unchecked: text] > 0x20
        else { return -1 }
        let end = bytes.endOfShortText(from: text)
        guard bytes.hasLineEnd(at: end), unsafe bytes[unchecked: end &- 1] > 0x20 else { return -1 }
        unsafe base[count] = HeadField(
            from: start, nameEnd: colon, valueStart: text, valueEnd: end, to: end &+ 2, known: known)
        return end &+ 2
    }

    /// Reads a line of any kind at `start`, which is not the empty line, into the place behind the last field.
    @inline(never)
    mutating func readLine(_ bytes: Span<UInt8>, at start: Int) -> LineOutcome {
        var known = KnownField.other
        var colon = -1
        if bytes.hasBlock(at: start) {
            colon = endOfShortName(bytes, at: start, bytes.block(at: start), &known)
            if colon < 0 { colon = endOfLongName(bytes, at: start, &known) }
        } else {
            colon = endOfShortName(bytes, at: start, bytes.tailBlock(at: start), &known)
        }
        guard colon >= 0 else { return unsafe FieldLine.read(bytes, at: start, into: &base[count]) }
        return unsafe FieldLine.readValue(bytes, from: start, after: colon, known, UnusualName(), into: &base[count])
    }

    /// The end of a name of two to fifteen letters, digits and dashes that `block` begins with, a colon behind it;
    /// else −1.
    @inline(__always)
    private func endOfShortName(
        _ bytes: Span<UInt8>, at start: Int, _ block: SIMD16<Int8>, _ known: inout KnownField
    ) -> Int {
        let length = firstMatch(block .== ASCII.colon)
        guard UInt(bitPattern: length &- 2) < 14 else { return -1 }
        let colon = start &+ length
        // The block has come from these bytes.
        let end = unsafe bytes.bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: colon &- 2, as: UInt16.self)
        if let field = names.field(block, count: length, end: end) {
            known = field
            return colon
        }
        known = .other
        return firstMatch(.!ASCII.areNameCharacters(block)) == length ? colon : -1
    }

    /// The same for a name of sixteen to thirty-one.
    @inline(__always)
    private func endOfLongName(_ bytes: Span<UInt8>, at start: Int, _ known: inout KnownField) -> Int {
        guard bytes.hasBlock(at: start &+ 16) else { return -1 }
        let first = bytes.block(at: start)
        let second = bytes.block(at: start &+ 16)
        let length = firstMatch(second .== ASCII.colon)
        guard length < 16, laneBits(ASCII.areNameCharacters(first)) == 0xFFFF,
            firstMatch(.!ASCII.areNameCharacters(second)) == length
        else { return -1 }
        let colon = start &+ 16 &+ length
        known = names.field(first, second, count: length &+ 16, end: bytes.quarter(at: colon &- 2)) ?? .other
        return colon
    }
}
