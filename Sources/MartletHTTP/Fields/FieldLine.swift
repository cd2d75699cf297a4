/// The result of parsing one line of a head.
enum LineOutcome {
    /// The line is valid; the offset of the next one.
    case next(Int)
    /// The line's end has not arrived.
    case incomplete
    case failure(HeadError)
}

/// Reads one field line (RFC 9112 §5), strictly: no folding, no space before the colon, CRLF only.
///
/// The full grammar, byte by byte where necessary; `FieldList` has fast paths for common lines.
enum FieldLine {
    /// Reads the line that begins at `start`, which is not the empty line.
    ///
    /// `field` is only valid when the line is.
    static func read(_ bytes: Span<UInt8>, at start: Int, into field: inout HeadField) -> LineOutcome {
        var colon = start
        var name = UnusualName()
        while colon < bytes.count, Token.isMember(bytes[colon]) {
            if FieldLetters.of(bytes[colon]) == 0, bytes[colon] != UInt8(ascii: "-") {
                name.isUnusual = true
                if bytes[colon] == UInt8(ascii: "%") { name.hasPercent = true }
            }
            colon &+= 1
        }
        guard colon < bytes.count else { return .incomplete }
        guard bytes[colon] == UInt8(ascii: ":"), colon > start else {
            return .failure(nameFailure(bytes, start, colon))
        }
        let range = ByteRange(from: start, to: colon)
        var known = KnownField.other
        if name.isUnusual {
            name.alias = KnownField.lookAlike(bytes, range)
        } else {
            known = KnownField.named(bytes, range)
        }
        return readValue(bytes, from: start, after: colon, known, name, into: &field)
    }

    /// Reads a line that is known to be valid.
    @inline(never)
    static func isRead(_ bytes: Span<UInt8>, at start: Int, into field: inout HeadField) -> Bool {
        if case .next = read(bytes, at: start, into: &field) { true } else { false }
    }

    /// Why a line is rejected whose name is empty or ends at `stop` without a colon.
    private static func nameFailure(_ bytes: Span<UInt8>, _ start: Int, _ stop: Int) -> HeadError {
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

    /// Reads what follows the colon of a line that begins at `line`.
    static func readValue(
        _ bytes: Span<UInt8>, from line: Int, after colon: Int, _ known: KnownField, _ name: UnusualName,
        into field: inout HeadField
    ) -> LineOutcome {
        var start = colon &+ 1
        while bytes.hasBlank(at: start) { start &+= 1 }
        var hasObsText = false
        var stop = bytes.endOfText(from: start)
        while true {
            guard stop < bytes.count else { return .incomplete }
            let byte = bytes[stop]
            if byte == 0x0D { break }
            guard byte == 0x09 || byte >= 0x80 else { return .failure(byte == 0x0A ? .bareLF : .badFieldValue) }
            if byte >= 0x80 { hasObsText = true }
            stop = bytes.endOfText(from: stop &+ 1)
        }
        guard stop &+ 1 < bytes.count else { return .incomplete }
        guard bytes[stop &+ 1] == 0x0A else { return .failure(.bareCR) }
        var end = stop
        while end > start, bytes.hasBlank(at: end &- 1) { end &-= 1 }
        field = HeadField(from: line, nameEnd: colon, valueStart: start, valueEnd: end, to: stop &+ 2, known: known)
        field.set(name, hasObsText: hasObsText)
        return .next(stop &+ 2)
    }

    /// Expects CRLF at `index`; `otherwise` is the failure for another byte.
    @inline(__always)
    static func readEnd(_ bytes: Span<UInt8>, at index: Int, otherwise failure: HeadError) -> LineOutcome {
        bytes.hasLineEnd(at: index) ? .next(index &+ 2) : readEndSlow(bytes, at: index, otherwise: failure)
    }

    @inline(never)
    private static func readEndSlow(_ bytes: Span<UInt8>, at index: Int, otherwise failure: HeadError) -> LineOutcome {
        guard index < bytes.count else { return .incomplete }
        if bytes[index] == 0x0D { return index &+ 1 < bytes.count ? .failure(.bareCR) : .incomplete }
        return .failure(bytes[index] == 0x0A ? .bareLF : failure)
    }
}
