/// Parses request heads, strictly (RFC 9112; RFC 9110 for what the fields mean).
///
/// A line is judged once its end is there, so that the outcome does not depend on how the bytes were cut. The caller
/// keeps the bytes of an incomplete head; a call that brings no line end costs no more than a search for it.
package struct RequestParser: Sendable {
    private static let maximumEmptyLines = 2

    private let maximumHeadBytes: Int
    private let maximumTargetBytes: Int
    /// How many bytes were searched for line ends while the head was incomplete.
    private var searched = 0
    private var isPastRequestLine = false

    package init(maximumHeadBytes: Int, maximumTargetBytes: Int = 8192) {
        self.maximumHeadBytes = maximumHeadBytes
        self.maximumTargetBytes = maximumTargetBytes
    }

    /// Forgets an incomplete head.
    package mutating func reset() {
        searched = 0
        isPastRequestLine = false
    }

    /// Looks for one head at the beginning of `bytes`.
    ///
    /// After `complete` or `failure` the parser is as new; after `needMore` it expects the same bytes with more behind
    /// them.
    package mutating func parse(_ bytes: Span<UInt8>, into head: inout RequestHead) -> HeadOutcome {
        let window = bytes.extracting(first: min(bytes.count, maximumHeadBytes))
        var outcome = HeadOutcome.needMore
        if hasNews(window) { outcome = parseAll(window, into: &head) }
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

    /// No request line that could be accepted is so long.
    private var longestRequestLine: Int { maximumTargetBytes &+ RequestHead.maximumMethodBytes &+ 16 }

    private func hasNews(_ window: Span<UInt8>) -> Bool {
        if searched == 0 { return true }
        guard searched <= window.count else { return true }
        return window.lineFeed(from: searched) < window.count
            || (!isPastRequestLine && window.count > longestRequestLine)
    }

    @inline(__always)
    private mutating func parseAll(_ bytes: Span<UInt8>, into head: inout RequestHead) -> HeadOutcome {
        head.clear()
        var index = head.readUsualLine(bytes, maximumTargetBytes: maximumTargetBytes)
        if index < 0 {
            switch readRareLine(bytes, into: &head) {
            case .complete(let next): index = next
            case let outcome: return outcome
            }
        }
        isPastRequestLine = true
        return readFields(bytes, at: index, into: &head)
    }

    /// Reads a request line of any kind.
    /// - Returns: `complete` with where the fields begin.
    @inline(never)
    private func readRareLine(_ bytes: Span<UInt8>, into head: inout RequestHead) -> HeadOutcome {
        var index = 0
        var emptyLines = 0
        // RFC 9112 §2.2: empty lines before a request line are left over from the request before.
        while bytes.hasLineEnd(at: index), emptyLines < RequestParser.maximumEmptyLines {
            index &+= 2
            emptyLines &+= 1
        }
        guard index < bytes.count else { return .needMore }
        // Something that cannot be HTTP, such as a TLS handshake, has no line end to wait for.
        if index == 0, bytes[0] != 0x0D, bytes[0] != 0x0A, !Token.isMember(bytes[0]) {
            return .failure(.badRequestLine)
        }
        switch head.readRequestLine(bytes, at: index, maximumTargetBytes: maximumTargetBytes) {
        case .next(let next): return .complete(next)
        case .incomplete:
            return bytes.count > longestRequestLine ? settle(.badRequestLine, bytes, from: index) : .needMore
        case .failure(let failure): return settle(failure, bytes, from: index)
        }
    }

    @inline(__always)
    private func readFields(_ bytes: Span<UInt8>, at start: Int, into head: inout RequestHead) -> HeadOutcome {
        var index = start
        guard bytes.count >= 16 else { return readFew(bytes, at: start, into: &head) }
        var notes = RequestNotes(isHTTP10: head.isHTTP10)
        while true {
            var known = KnownField.other
            var isSpecial = false
            let next = head.fields.readUsualLine(bytes, at: index, &known)
            if next > 0 {
                index = next
            } else {
                guard next < 0, index < bytes.count, !bytes.hasLineEnd(at: index) else { break }
                switch head.fields.readLine(bytes, at: index) {
                case .next(let next): index = next
                case .incomplete: return .needMore
                case .failure(let failure): return settle(failure, bytes, from: index)
                }
                known = head.fields.next
                isSpecial = true
            }
            guard head.fields.keepLine(known) else { return .failure(.tooManyFields) }
            if known.isJudged || isSpecial, let failure = notes.note(bytes, &head) { return .failure(failure) }
        }
        guard index < bytes.count else { return .needMore }
        if let failure = notes.finish(bytes, &head) { return .failure(failure) }
        return .complete(index &+ 2)
    }

    /// Behind a request line, less than sixteen bytes in all have no room for a field.
    @inline(never)
    private func readFew(_ bytes: Span<UInt8>, at start: Int, into head: inout RequestHead) -> HeadOutcome {
        guard start < bytes.count, !bytes.hasLineEnd(at: start),
            case .failure(let failure) = head.fields.readLine(bytes, at: start)
        else { return .needMore }
        return settle(failure, bytes, from: start)
    }

    /// A line is only refused once it is all there, or cannot be good any more.
    @inline(never)
    private func settle(_ failure: HeadFailure, _ bytes: Span<UInt8>, from lineStart: Int) -> HeadOutcome {
        if bytes.lineFeed(from: lineStart) < bytes.count { return .failure(failure) }
        return !isPastRequestLine && bytes.count > longestRequestLine ? .failure(failure) : .needMore
    }
}
