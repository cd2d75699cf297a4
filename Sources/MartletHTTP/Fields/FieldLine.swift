/// Where reading one line of a head led.
enum LineOutcome {
    /// The line is good; the next one begins there.
    case next(Int)
    /// The line has no end yet.
    case incomplete
    case failure(HeadFailure)
}

/// Reads one field line (RFC 9112 §5), strictly: no folding, no space before the colon, CRLF only.
///
/// The functions for what is usual call the others only in their last step: their variables stay in registers, and what
/// they found out is in `field` by then.
enum FieldLine {
    /// Reads the line that begins at `start`, which is not the empty line.
    ///
    /// `field` is only meaningful when the line is good.
    @inline(never)
    static func read(_ bytes: Span<UInt8>, at start: Int, into field: inout HeadField) -> LineOutcome {
        guard bytes.hasBlock(at: start) else { return readLast(bytes, at: start, into: &field) }
        return read(bytes, at: start, bytes.block(at: start), into: &field)
    }

    /// A line with fewer than sixteen bytes from its beginning to the end of all bytes.
    @inline(never)
    private static func readLast(_ bytes: Span<UInt8>, at start: Int, into field: inout HeadField) -> LineOutcome {
        read(bytes, at: start, bytes.tailBlock(at: start), into: &field)
    }

    @inline(__always)
    private static func read(
        _ bytes: Span<UInt8>, at start: Int, _ block: SIMD16<Int8>, into field: inout HeadField
    ) -> LineOutcome {
        let length = firstMatch(.!ASCII.areNameCharacters(block))
        let colon = start &+ length
        guard UInt(bitPattern: length &- 1) < 15, bytes.has(UInt8(ascii: ":"), at: colon) else {
            return readRare(bytes, at: start, into: &field)
        }
        let name = FoldedName(block, count: length)
        field.setName(ByteRange(ordered: start, colon), hash: name.hash, known: name.known, alias: .other)
        return readValue(bytes, after: colon, into: &field)
    }

    /// A line that does not begin with a name of one to fifteen letters, digits and dashes and a colon.
    @inline(never)
    private static func readRare(_ bytes: Span<UInt8>, at start: Int, into field: inout HeadField) -> LineOutcome {
        if !readLongName(bytes, at: start, into: &field),
            let stopped = readRareName(bytes, at: start, into: &field)
        {
            return stopped
        }
        return readValue(bytes, after: field.name.end, into: &field)
    }

    /// A name of letters, digits and dashes only; `false` for another or where it may go on.
    @inline(__always)
    private static func readLongName(_ bytes: Span<UInt8>, at start: Int, into field: inout HeadField) -> Bool {
        var hash = NameHash()
        var colon = start
        while bytes.hasBlock(at: colon) {
            let block = bytes.block(at: colon)
            let length = firstMatch(.!ASCII.areNameCharacters(block))
            hash.mix(unsafe unsafeBitCast(block | ASCII.caseBit, to: SIMD2<UInt64>.self), count: length)
            colon &+= length
            if length < 16 { break }
        }
        guard colon > start, bytes.has(UInt8(ascii: ":"), at: colon) else { return false }
        let range = ByteRange(from: start, to: colon)
        field.setName(range, hash: hash.value, known: KnownField.named(bytes, range), alias: .other)
        return true
    }

    /// A name with other token characters, one at the very end of the bytes, or a line that is wrong; nil for a good
    /// name.
    @inline(never)
    private static func readRareName(_ bytes: Span<UInt8>, at start: Int, into field: inout HeadField) -> LineOutcome? {
        var hash = NameHash()
        var word: UInt64 = 0
        var colon = start
        var isFolded = false
        while colon < bytes.count {
            let byte = bytes[colon]
            let folded = Token.fold(byte)
            if folded == 0 { break }
            if byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".") { isFolded = true }
            let position = (colon &- start) & 7
            word |= UInt64(folded) &<< (UInt64(truncatingIfNeeded: position) &* 8)
            if position == 7 {
                hash.mix(word)
                word = 0
            }
            colon &+= 1
        }
        guard colon < bytes.count else { return .incomplete }
        guard bytes[colon] == UInt8(ascii: ":"), colon > start else { return .failure(fault(bytes, start, colon)) }
        if (colon &- start) & 7 != 0 { hash.mix(word) }
        let range = ByteRange(from: start, to: colon)
        field.setName(
            range, hash: hash.value, known: KnownField.named(bytes, range),
            alias: isFolded ? KnownField.folded(bytes, range) : .other)
        return nil
    }

    /// What is wrong with a line whose name ends at `stop` without a colon, or is empty.
    private static func fault(_ bytes: Span<UInt8>, _ start: Int, _ stop: Int) -> HeadFailure {
        switch bytes[stop] {
        case 0x20, 0x09:
            if stop == start { return .obsFold }
            var next = stop
            while next < bytes.count, ASCII.isBlank(bytes[next]) { next &+= 1 }
            return next < bytes.count && bytes[next] == UInt8(ascii: ":") ? .spaceBeforeColon : .badFieldName
        case 0x0A: return .bareLF
        case 0x0D: return stop &+ 1 < bytes.count && bytes[stop &+ 1] == 0x0A ? .badFieldName : .bareCR
        default: return .badFieldName
        }
    }

    @inline(__always)
    private static func readValue(
        _ bytes: Span<UInt8>, after colon: Int, into field: inout HeadField
    ) -> LineOutcome {
        var start = colon &+ 1
        while bytes.hasBlank(at: start) { start &+= 1 }
        var end = start
        if bytes.hasBlock(at: end) { end &+= firstMatch(ASCII.areNoText(bytes.block(at: end))) }
        if end == start &+ 16, bytes.hasBlock(at: end) { end &+= firstMatch(ASCII.areNoText(bytes.block(at: end))) }
        guard bytes.hasLineEnd(at: end) else { return readLongValue(bytes, from: start, text: end, into: &field) }
        return finish(bytes, from: start, to: end, into: &field)
    }

    /// A value that is long or has tabs or bytes over 0x7F, or a line that is wrong; up to `text` it is plain.
    @inline(never)
    private static func readLongValue(
        _ bytes: Span<UInt8>, from start: Int, text: Int, into field: inout HeadField
    ) -> LineOutcome {
        var end = bytes.endOfText(from: text)
        while true {
            guard end < bytes.count else { return .incomplete }
            let byte = bytes[end]
            if byte == 0x0D { break }
            guard byte == 0x09 || byte >= 0x80 else { return .failure(byte == 0x0A ? .bareLF : .badFieldValue) }
            if byte >= 0x80 { field.hasObsText = true }
            end = bytes.endOfText(from: end &+ 1)
        }
        guard end &+ 1 < bytes.count else { return .incomplete }
        guard bytes[end &+ 1] == 0x0A else { return .failure(.bareCR) }
        return finish(bytes, from: start, to: end, into: &field)
    }

    /// Takes down a value whose CR is at `stop`.
    @inline(__always)
    private static func finish(
        _ bytes: Span<UInt8>, from start: Int, to stop: Int, into field: inout HeadField
    ) -> LineOutcome {
        let next = stop &+ 2
        var end = stop
        while end > start, bytes.hasBlank(at: end &- 1) { end &-= 1 }
        field.value = ByteRange(ordered: start, end)
        field.line = ByteRange(ordered: field.name.start, next)
        return .next(next)
    }

    /// CRLF at `index`, the end of a line that ought to end here; `otherwise` is what another byte there means.
    @inline(__always)
    static func readEnd(_ bytes: Span<UInt8>, at index: Int, otherwise failure: HeadFailure) -> LineOutcome {
        bytes.hasLineEnd(at: index) ? .next(index &+ 2) : judgeEnd(bytes, at: index, otherwise: failure)
    }

    @inline(never)
    private static func judgeEnd(_ bytes: Span<UInt8>, at index: Int, otherwise failure: HeadFailure) -> LineOutcome {
        guard index < bytes.count else { return .incomplete }
        if bytes[index] == 0x0D { return index &+ 1 < bytes.count ? .failure(.bareCR) : .incomplete }
        return .failure(bytes[index] == 0x0A ? .bareLF : failure)
    }
}
