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

    private func parseAll(_ bytes: Span<UInt8>, _ method: Method, into head: inout ResponseHead) -> HeadOutcome {
        head.fields.removeAll()
        guard bytes.count > 0 else { return .needMore }
        guard bytes[0] == UInt8(ascii: "H") else { return .failure(.upstreamBadStatusLine) }
        var index = 0
        switch head.readStatusLine(bytes, at: 0) {
        case .next(let next): index = next
        case .incomplete: return .needMore
        case .failure(let failure): return settle(failure, bytes, from: 0)
        }
        var notes = ResponseNotes(isHTTP10: head.isHTTP10)
        while index < bytes.count {
            if bytes.hasLineEnd(at: index) {
                if let failure = notes.finish(bytes, method, &head) { return blame(failure) }
                return .complete(index &+ 2)
            }
            switch head.fields.readLine(bytes, at: index) {
            case .next(let next): index = next
            case .incomplete: return .needMore
            case .failure(let failure): return settle(failure, bytes, from: index)
            }
            guard head.fields.keepLine() else { return .failure(.upstreamTooManyFields) }
            let last = head.fields.count &- 1
            let known = head.fields[last].known
            if known.isJudged, let failure = notes.note(known, head.fields[last].value, bytes) { return blame(failure) }
        }
        return .needMore
    }

    /// A line is only refused once it is all there.
    @inline(never)
    private func settle(_ failure: HeadFailure, _ bytes: Span<UInt8>, from lineStart: Int) -> HeadOutcome {
        bytes.lineFeed(from: lineStart) < bytes.count ? .failure(failure.upstream) : .needMore
    }

    @inline(never)
    private func blame(_ failure: HeadFailure) -> HeadOutcome { .failure(failure.upstream) }
}
