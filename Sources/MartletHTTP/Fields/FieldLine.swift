/// Where reading one line of a head led.
enum LineOutcome {
    /// The line is good; the next one begins there.
    case next(Int)
    /// The line has no end yet.
    case incomplete
    case failure(HeadFailure)
}

/// Reads one field line (RFC 9112 §5), strictly: no folding, no space before the colon, CRLF only.
enum FieldLine {
    private static let caseBits: UInt64 = 0x2020_2020_2020_2020

    /// Reads the line that begins at `start`, which is not the empty line.
    @inline(__always)
    static func read(_ bytes: Span<UInt8>, at start: Int, into field: inout HeadField) -> LineOutcome {
        var hash = NameHash()
        var colon = start
        var isPlain = false
        while colon &+ 8 <= bytes.count {
            let word = bytes.word(at: colon)
            let stops = nameStops(word)
            if stops == 0 {
                hash.mix(word | caseBits)
                colon &+= 8
                continue
            }
            let length = stops.trailingZeroBitCount >> 3
            if length > 0 {
                hash.mix((word | caseBits) & (UInt64.max &>> (64 &- UInt64(truncatingIfNeeded: length) &* 8)))
            }
            colon &+= length
            isPlain = bytes[colon] == UInt8(ascii: ":") && colon > start
            break
        }
        guard isPlain else { return readRare(bytes, at: start, into: &field) }
        let name = ByteRange(from: start, to: colon)
        let known = KnownField.named(bytes, name)
        return readValue(bytes, name, hash: hash.value, known: known, alias: .other, into: &field)
    }

    /// Bit 7 of every byte that is no letter, digit or dash.
    @inline(__always)
    private static func nameStops(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let high: UInt64 = ones &* 0x80
        let low = word & ~high
        // Adding 0x80 − x to a seven-bit number sets bit 7 if the number is at least x, without a carry.
        let lower = low | caseBits
        let letters = (lower &+ ones &* 0x1F) & ~(lower &+ ones &* 0x05)
        let digits = (low &+ ones &* 0x50) & ~(low &+ ones &* 0x46)
        let dashes = ~((low ^ (ones &* 0x2D)) &+ ones &* 0x7F)
        return ~((letters | digits | dashes) & ~word) & high
    }

    /// A name with other token characters, one at the very end of the bytes, or a line that is wrong.
    @inline(never)
    private static func readRare(_ bytes: Span<UInt8>, at start: Int, into field: inout HeadField) -> LineOutcome {
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
        let name = ByteRange(from: start, to: colon)
        return readValue(
            bytes, name, hash: hash.value,
            known: isFolded ? .other : KnownField.named(bytes, name),
            alias: isFolded ? KnownField.folded(bytes, name) : .other,
            into: &field)
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
        _ bytes: Span<UInt8>, _ name: ByteRange, hash: UInt32, known: KnownField, alias: KnownField,
        into field: inout HeadField
    ) -> LineOutcome {
        var start = name.end &+ 1
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
            name: name, value: ByteRange(from: start, to: end), line: ByteRange(from: name.start, to: next),
            nameHash: hash, known: known, alias: alias, hasObsText: hasObsText, isConnectionOption: false)
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
