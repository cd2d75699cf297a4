/// Parses response heads of upstreams as strictly as requests are parsed.
///
/// Its failures are the upstream's (`upstream.…`).
package struct ResponseParser: Sendable {
    private let maximumHeadBytes: Int
    private var searched = 0

    package init(maximumHeadBytes: Int) { self.maximumHeadBytes = maximumHeadBytes }

    /// Forgets an incomplete head.
    package mutating func reset() { searched = 0 }

    /// Looks for one head at the beginning of `bytes`; `requestMethod` decides whether a body follows.
    ///
    /// After `complete` or `failure` the parser is as new; after `needMore` it expects the same bytes with more behind
    /// them.
    package mutating func parse(
        _ bytes: Span<UInt8>, requestMethod: Method, into head: inout ResponseHead
    ) -> HeadOutcome {
        let window = bytes.extracting(first: min(bytes.count, maximumHeadBytes))
        // Everything that was said of the head is still there.
        let known = head.memory.whole(of: window, requestMethod)
        if known > 0 {
            reset()
            return .complete(known)
        }
        var outcome = HeadOutcome.needMore
        if searched == 0 || searched > window.count || window.lineFeed(from: searched) < window.count {
            outcome = parseAll(window, requestMethod, into: &head)
        }
        if outcome == .needMore {
            if window.count < maximumHeadBytes {
                searched = window.count
                return .needMore
            }
            outcome = .failure(.upstreamHeadTooLarge)
        }
        reset()
        return outcome
    }

    @inline(never)
    private func parseAll(_ bytes: Span<UInt8>, _ method: Method, into head: inout ResponseHead) -> HeadOutcome {
        let former = head.memory.part(of: bytes)
        let outcome = parse(bytes, method, former, into: &head)
        if case .complete(let count) = outcome {
            head.memory.keep(bytes, count: count, shared: former.bytes, method, head.fields)
        } else {
            head.memory.forget()
        }
        return outcome
    }

    @inline(__always)
    private func parse(
        _ bytes: Span<UInt8>, _ method: Method, _ former: (bytes: Int, fields: Int), into head: inout ResponseHead
    ) -> HeadOutcome {
        head.fields.removeAll()
        guard bytes.count > 0 else { return .needMore }
        guard bytes[0] == UInt8(ascii: "H") else { return .failure(.upstreamBadStatusLine) }
        var index = head.readUsualLine(bytes)
        if index < 0 {
            switch head.readStatusLine(bytes, at: 0) {
            case .next(let next): index = next
            case .incomplete: return .needMore
            case .failure(let failure): return settle(failure, bytes, from: 0)
            }
            head.kept.begin(at: index)
        } else {
            head.kept.begin(at: head.isHTTP10 ? index : 0)
        }
        return readFields(bytes, at: index, method, former, into: &head)
    }

    @inline(__always)
    private func readFields(
        _ bytes: Span<UInt8>, at start: Int, _ method: Method, _ former: (bytes: Int, fields: Int),
        into head: inout ResponseHead
    ) -> HeadOutcome {
        guard bytes.count >= 16 else { return readFew(bytes, at: start, into: &head) }
        var index = start
        var notes = ResponseNotes(isHTTP10: head.isHTTP10)
        while true {
            var known = KnownField.other
            var next = head.fields.count < former.fields ? head.fields.formerEnd(within: former.bytes, &known) : -1
            if next < 0 { next = head.fields.readUsualLine(bytes, at: index, &known) }
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
            }
            guard head.fields.keepLine(known) else { return .failure(.upstreamTooManyFields) }
            if known.isOfConnection, let failure = notes.note(bytes, &head) { return blame(failure) }
        }
        guard index < bytes.count else { return .needMore }
        if let failure = notes.finish(bytes, method, &head) { return blame(failure) }
        head.kept.end(at: index, isWhole: !head.fields.hasConnectionOptions)
        return .complete(index &+ 2)
    }

    /// Behind a status line, less than sixteen bytes in all have no room for a field.
    @inline(never)
    private func readFew(_ bytes: Span<UInt8>, at start: Int, into head: inout ResponseHead) -> HeadOutcome {
        guard start < bytes.count, !bytes.hasLineEnd(at: start),
            case .failure(let failure) = head.fields.readLine(bytes, at: start)
        else { return .needMore }
        return settle(failure, bytes, from: start)
    }

    /// A line is only refused once it is all there.
    @inline(never)
    private func settle(_ failure: HeadFailure, _ bytes: Span<UInt8>, from lineStart: Int) -> HeadOutcome {
        bytes.lineFeed(from: lineStart) < bytes.count ? .failure(failure.upstream) : .needMore
    }

    @inline(never)
    private func blame(_ failure: HeadFailure) -> HeadOutcome { .failure(failure.upstream) }
}
