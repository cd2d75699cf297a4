/// Parses request heads, strictly (RFC 9112; RFC 9110 for what the fields mean).
///
/// A line is checked once its end has arrived, so the outcome does not depend on how the bytes were split. The caller
/// buffers an incomplete head; a call that brings no line end costs no more than a search for one.
package struct RequestParser: Sendable {
    private static let maximumEmptyLines = 2

    private let maximumHeadBytes: Int
    private let maximumTargetBytes: Int
    /// Bytes already searched for line ends while the head was incomplete.
    private var searched = 0
    private var isPastRequestLine = false

    package init(maximumHeadBytes: Int, maximumTargetBytes: Int = 8192) {
        self.maximumHeadBytes = maximumHeadBytes
        self.maximumTargetBytes = maximumTargetBytes
    }

    /// Discards the state of an incomplete head.
    package mutating func reset() {
        searched = 0
        isPastRequestLine = false
    }

    /// Parses one head at the start of `bytes`.
    ///
    /// After `complete` or `failure` the parser is reset; after `needMore` it expects the same bytes with more
    /// appended.
    package mutating func parse(_ bytes: Span<UInt8>, into head: inout RequestHead) -> HeadOutcome {
        let window = bytes.extracting(first: min(bytes.count, maximumHeadBytes))
        var outcome = HeadOutcome.needMore
        if hasNewLine(window) { outcome = parseAll(window, into: &head) }
        if outcome == .needMore {
            if window.count < maximumHeadBytes {
                searched = window.count
                return .needMore
            }
            outcome = .failure(.headTooLarge)
        }
        reset()
        return outcome
    }

    /// Parses a head that was written as text, with the offsets of its field lines.
    ///
    /// The checks and the result are those of `parse(_:into:)` with the same bytes, as long as every field line is valid.
    ///
    /// - Parameters:
    ///   - bytes: the whole head, in memory that does not change.
    ///   - offsets: one for each field line, in order.
    package mutating func parse(
        _ bytes: Span<UInt8>, offsets: UnsafeBufferPointer<FieldOffsets>, into head: inout RequestHead
    ) -> HeadOutcome {
        guard bytes.count <= maximumHeadBytes else { return parse(bytes, into: &head) }
        head.clear()
        var index = head.readRequestLineFast(bytes, maximumTargetBytes: maximumTargetBytes)
        if index < 0 {
            guard case .complete(let next) = readRequestLineSlow(bytes, into: &head) else {
                return parse(bytes, into: &head)
            }
            index = next
        }
        reset()
        return unsafe fill(bytes, at: index, offsets, into: &head)
    }

    @inline(__always)
    private func fill(
        _ bytes: Span<UInt8>, at start: Int, _ offsets: UnsafeBufferPointer<FieldOffsets>, into head: inout RequestHead
    ) -> HeadOutcome {
        var checks = RequestHeadChecks(isHTTP10: head.isHTTP10)
        for index in 0..<offsets.count {
            var known = KnownField.other
            let isCommon = unsafe head.fields.fill(bytes, offsets[index], &known)
            guard head.fields.appendPending(known) else { return .failure(.tooManyFields) }
            if known.isCheckedInRequests || !isCommon, let failure = checks.check(bytes, &head) {
                return .failure(failure)
            }
        }
        if let failure = checks.finish(bytes, &head) { return .failure(failure) }
        return .complete(bytes.count)
    }

    /// Longer than any request line that could be accepted.
    private var longestRequestLine: Int { maximumTargetBytes &+ RequestHead.maximumMethodBytes &+ 16 }

    private func hasNewLine(_ window: Span<UInt8>) -> Bool {
        if searched == 0 { return true }
        guard searched <= window.count else { return true }
        return window.lineFeed(from: searched) < window.count
            || (!isPastRequestLine && window.count > longestRequestLine)
    }

    @inline(__always)
    private mutating func parseAll(_ bytes: Span<UInt8>, into head: inout RequestHead) -> HeadOutcome {
        head.clear()
        var index = head.readRequestLineFast(bytes, maximumTargetBytes: maximumTargetBytes)
        if index < 0 {
            switch readRequestLineSlow(bytes, into: &head) {
            case .complete(let next): index = next
            case let outcome: return outcome
            }
        }
        isPastRequestLine = true
        return readFields(bytes, at: index, into: &head)
    }

    /// Reads a request line with the full grammar.
    /// - Returns: `complete` with where the fields begin.
    @inline(never)
    private func readRequestLineSlow(_ bytes: Span<UInt8>, into head: inout RequestHead) -> HeadOutcome {
        var index = 0
        var emptyLines = 0
        // RFC 9112 §2.2: skip empty lines that a client sent after its previous request.
        while bytes.hasLineEnd(at: index), emptyLines < RequestParser.maximumEmptyLines {
            index &+= 2
            emptyLines &+= 1
        }
        guard index < bytes.count else { return .needMore }
        // Bytes that cannot be HTTP, such as a TLS handshake: do not wait for a line end.
        if index == 0, bytes[0] != 0x0D, bytes[0] != 0x0A, !Token.isMember(bytes[0]) {
            return .failure(.badRequestLine)
        }
        switch head.readRequestLine(bytes, at: index, maximumTargetBytes: maximumTargetBytes) {
        case .next(let next): return .complete(next)
        case .incomplete:
            return bytes.count > longestRequestLine ? failOnceLineEnds(.badRequestLine, bytes, from: index) : .needMore
        case .failure(let failure): return failOnceLineEnds(failure, bytes, from: index)
        }
    }

    @inline(__always)
    private func readFields(_ bytes: Span<UInt8>, at start: Int, into head: inout RequestHead) -> HeadOutcome {
        var index = start
        guard bytes.count >= 16 else { return readFieldsShort(bytes, at: start, into: &head) }
        var checks = RequestHeadChecks(isHTTP10: head.isHTTP10)
        while true {
            var known = KnownField.other
            var isSpecial = false
            let next = head.fields.readLineFast(bytes, at: index, &known)
            if next > 0 {
                index = next
            } else {
                guard next < 0, index < bytes.count, !bytes.hasLineEnd(at: index) else { break }
                switch head.fields.readLine(bytes, at: index) {
                case .next(let next): index = next
                case .incomplete: return .needMore
                case .failure(let failure): return failOnceLineEnds(failure, bytes, from: index)
                }
                known = head.fields.pendingKind
                isSpecial = true
            }
            guard head.fields.appendPending(known) else { return .failure(.tooManyFields) }
            if known.isCheckedInRequests || isSpecial, let failure = checks.check(bytes, &head) {
                return .failure(failure)
            }
        }
        guard index < bytes.count else { return .needMore }
        if let failure = checks.finish(bytes, &head) { return .failure(failure) }
        return .complete(index &+ 2)
    }

    /// A head of fewer than sixteen bytes has no space for a valid field after its request line.
    @inline(never)
    private func readFieldsShort(_ bytes: Span<UInt8>, at start: Int, into head: inout RequestHead) -> HeadOutcome {
        guard start < bytes.count, !bytes.hasLineEnd(at: start),
            case .failure(let failure) = head.fields.readLine(bytes, at: start)
        else { return .needMore }
        return failOnceLineEnds(failure, bytes, from: start)
    }

    /// Rejects a line only once it is complete, or too long to become valid.
    @inline(never)
    private func failOnceLineEnds(_ failure: HeadError, _ bytes: Span<UInt8>, from lineStart: Int) -> HeadOutcome {
        if bytes.lineFeed(from: lineStart) < bytes.count { return .failure(failure) }
        return !isPastRequestLine && bytes.count > longestRequestLine ? .failure(failure) : .needMore
    }
}
