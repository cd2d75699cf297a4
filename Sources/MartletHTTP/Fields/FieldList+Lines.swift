extension FieldList {
    /// Parses a common line at `start` into the slot after the last field.
    ///
    /// Common means a name of letters, digits and dashes, one space, and text without trailing white space.
    ///
    /// - Parameter known: becomes the field's kind.
    /// - Returns: the offset of the next line; 0 for the empty line; −1 when `readLine` has to decide.
    @inline(__always)
    mutating func readLineFast(_ bytes: Span<UInt8>, at start: Int, _ known: inout KnownField) -> Int {
        guard bytes.hasBlock(at: start) else { return -1 }
        let colon = endOfShortName(bytes, at: start, bytes.block(at: start), &known)
        guard colon >= 0 else { return bytes.hasLineEnd(at: start) ? 0 : -1 }
        let text = colon &+ 2
        // Everything before `text` is in bounds, and `end` is greater than `text`.
        guard UInt(bitPattern: text) < UInt(bitPattern: bytes.count), unsafe bytes[unchecked: text &- 1] == 0x20,
            unsafe bytes[unchecked: text] > 0x20
        else { return -1 }
        let end = bytes.endOfShortText(from: text)
        guard bytes.hasLineEnd(at: end), unsafe bytes[unchecked: end &- 1] > 0x20 else { return -1 }
        unsafe base[count] = HeadField(
            from: start, nameEnd: colon, valueStart: text, valueEnd: end, to: end &+ 2, known: known)
        return end &+ 2
    }

    /// Fills the slot after the last field from the offsets of a line, without a search for its parts.
    ///
    /// - Parameter known: becomes the field's kind.
    /// - Returns: whether the line is a common one, as `readLineFast` reads them; others go through the full grammar.
    @inline(__always)
    mutating func fill(_ bytes: Span<UInt8>, _ line: FieldOffsets, _ known: inout KnownField) -> Bool {
        let start = Int(line.start)
        let end = Int(line.nameEnd)
        guard !line.hasObsText, start < end, hasCommonName(bytes, start, end, &known) else {
            guard unsafe FieldLine.isRead(bytes, at: start, into: &base[count]) else { return false }
            known = pendingKind
            return false
        }
        unsafe base[count] = HeadField(
            from: start, nameEnd: end, valueStart: end &+ 2, valueEnd: Int(line.valueEnd),
            to: Int(line.valueEnd) &+ 2, known: known)
        return true
    }

    /// Whether a name has two to thirty-one letters, digits and dashes; the colon stands at `end`.
    @inline(__always)
    private func hasCommonName(_ bytes: Span<UInt8>, _ start: Int, _ end: Int, _ known: inout KnownField) -> Bool {
        let length = end &- start
        guard length >= 2, bytes.hasBlock(at: start) else { return false }
        let first = bytes.block(at: start)
        if length < 16 {
            known = names.field(first, count: length, end: bytes.quarter(at: end &- 2)) ?? .other
            return known != .other || firstMatch(.!ASCII.areNameCharacters(first)) == length
        }
        guard length < 32, bytes.hasBlock(at: start &+ 16) else { return false }
        let second = bytes.block(at: start &+ 16)
        known = names.field(first, second, count: length, end: bytes.quarter(at: end &- 2)) ?? .other
        return known != .other
            || laneBits(ASCII.areNameCharacters(first)) == 0xFFFF
                && firstMatch(.!ASCII.areNameCharacters(second)) == length &- 16
    }

    /// Parses any line at `start` but the empty one into the slot after the last field.
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

    /// The end of a name of two to fifteen letters, digits and dashes at the start of `block`, followed by a colon;
    /// else −1.
    @inline(__always)
    private func endOfShortName(
        _ bytes: Span<UInt8>, at start: Int, _ block: SIMD16<Int8>, _ known: inout KnownField
    ) -> Int {
        let length = firstMatch(block .== ASCII.colon)
        guard UInt(bitPattern: length &- 2) < 14 else { return -1 }
        let colon = start &+ length
        // In bounds: the block was loaded from these bytes.
        let end = unsafe bytes.bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: colon &- 2, as: UInt16.self)
        if let field = names.field(block, count: length, end: end) {
            known = field
            return colon
        }
        known = .other
        return firstMatch(.!ASCII.areNameCharacters(block)) == length ? colon : -1
    }

    /// The same for a name of sixteen to thirty-one bytes.
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
