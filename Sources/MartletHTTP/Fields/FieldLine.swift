/// Where reading one line of a head led.
enum LineOutcome {
    /// The line is good; the next one begins there.
    case next(Int)
    /// The line has no end yet.
    case incomplete
    case failure(HeadFailure)
}

/// A field name and what was found out about it on the way to its colon.
private struct FieldName {
    let range: ByteRange
    let hash: UInt32
    let alias: KnownField
}

/// Reads one field line (RFC 9112 §5), strictly: no folding, no space before the colon, CRLF only.
enum FieldLine {
    /// Reads the line that begins at `start`, which is not the empty line.
    @inline(__always)
    static func read(_ bytes: Span<UInt8>, at start: Int, into field: inout HeadField) -> LineOutcome {
        var hash = NameHash()
        var colon = start
        while bytes.hasBlock(at: colon) {
            let block = bytes.block(at: colon)
            let length = firstMatch(.!ASCII.areNameCharacters(block))
            // Setting the bit changes neither digits nor the dash: these are the folded bytes.
            hash.mix(unsafe unsafeBitCast(block | ASCII.caseBit, to: SIMD2<UInt64>.self), count: length)
            colon &+= length
            if length < 16 { break }
        }
        var name = FieldName(range: ByteRange(from: start, to: colon), hash: hash.value, alias: .other)
        if colon == start || colon >= bytes.count || bytes[colon] != UInt8(ascii: ":") {
            var rare = FieldName(range: .empty, hash: 0, alias: .other)
            if let stopped = readRareName(bytes, at: start, into: &rare) { return stopped }
            name = rare
        }
        return readValue(bytes, name, into: &field)
    }

    /// A name with other token characters, one at the very end of the bytes, or a line that is wrong; nil for a good
    /// name.
    @inline(never)
    private static func readRareName(_ bytes: Span<UInt8>, at start: Int, into name: inout FieldName) -> LineOutcome? {
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
        name = FieldName(range: range, hash: hash.value, alias: isFolded ? KnownField.folded(bytes, range) : .other)
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
    private static func readValue(_ bytes: Span<UInt8>, _ name: FieldName, into field: inout HeadField) -> LineOutcome {
        var start = name.range.end &+ 1
        while start < bytes.count, ASCII.isBlank(bytes[start]) { start &+= 1 }
        var end = start
        var hasObsText = false
        while true {
            end = bytes.endOfText(from: end)
            guard end < bytes.count else { return .incomplete }
            let byte = bytes[end]
            if byte == 0x0D { break }
            guard byte == 0x09 || byte >= 0x80 else { return .failure(byte == 0x0A ? .bareLF : .badFieldValue) }
            hasObsText = hasObsText || byte >= 0x80
            end &+= 1
        }
        guard end &+ 1 < bytes.count else { return .incomplete }
        guard bytes[end &+ 1] == 0x0A else { return .failure(.bareCR) }
        let next = end &+ 2
        while end > start, ASCII.isBlank(bytes[end &- 1]) { end &-= 1 }
        field = HeadField(
            name: name.range, value: ByteRange(from: start, to: end), line: ByteRange(from: name.range.start, to: next),
            nameHash: name.hash, known: KnownField.named(bytes, name.range), alias: name.alias, hasObsText: hasObsText,
            isConnectionOption: false)
        return .next(next)
    }

    /// CRLF at `index`, the end of a line that ought to end here; `otherwise` is what another byte there means.
    @inline(__always)
    static func readEnd(_ bytes: Span<UInt8>, at index: Int, otherwise failure: HeadFailure) -> LineOutcome {
        guard index < bytes.count else { return .incomplete }
        if bytes[index] == 0x0D {
            guard index &+ 1 < bytes.count else { return .incomplete }
            return bytes[index &+ 1] == 0x0A ? .next(index &+ 2) : .failure(.bareCR)
        }
        return .failure(bytes[index] == 0x0A ? .bareLF : failure)
    }
}
