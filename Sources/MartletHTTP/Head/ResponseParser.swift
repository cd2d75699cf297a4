/// Parses upstream response heads as strictly as requests are parsed; failures are `upstream.…`.
package struct ResponseParser: Sendable {
    private let maximumHeadBytes: Int
    private var searched = 0

    package init(maximumHeadBytes: Int) { self.maximumHeadBytes = maximumHeadBytes }

    /// Discards the state of an incomplete head.
    package mutating func reset() { searched = 0 }

    /// Parses one head at the start of `bytes`; `requestMethod` decides whether a body follows.
    ///
    /// After `complete` or `failure` the parser is reset; after `needMore` it expects the same bytes with more
    /// appended.
    package mutating func parse(
        _ bytes: Span<UInt8>, requestMethod: Method, into head: inout ResponseHead
    ) -> HeadOutcome {
        let window = bytes.extracting(first: min(bytes.count, maximumHeadBytes))
        // Cache hit: `head` still holds the parsed result.
        let known = head.cache.match(window, requestMethod)
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
        let cached = head.cache.commonPrefix(with: bytes)
        let outcome = parse(bytes, method, cached, into: &head)
        if case .complete(let count) = outcome {
            head.cache.store(bytes, count: count, shared: cached.bytes, method, head.fields)
        } else {
            head.cache.invalidate()
        }
        return outcome
    }

    @inline(__always)
    private func parse(
        _ bytes: Span<UInt8>, _ method: Method, _ cached: (bytes: Int, fields: Int), into head: inout ResponseHead
    ) -> HeadOutcome {
        head.fields.removeAll()
        guard bytes.count > 0 else { return .needMore }
        guard bytes[0] == UInt8(ascii: "H") else { return .failure(.upstreamBadStatusLine) }
        var index = head.readStatusLineFast(bytes)
        if index < 0 {
            switch head.readStatusLine(bytes, at: 0) {
            case .next(let next): index = next
            case .incomplete: return .needMore
            case .failure(let failure): return failOnceLineEnds(failure, bytes, from: 0)
            }
            head.forwardable.begin(at: index)
        } else {
            head.forwardable.begin(at: head.isHTTP10 ? index : 0)
        }
        return readFields(bytes, at: index, method, cached, into: &head)
    }

    @inline(__always)
    private func readFields(
        _ bytes: Span<UInt8>, at start: Int, _ method: Method, _ cached: (bytes: Int, fields: Int),
        into head: inout ResponseHead
    ) -> HeadOutcome {
        guard bytes.count >= 16 else { return readFieldsShort(bytes, at: start, into: &head) }
        var index = start
        var checks = ResponseHeadChecks(isHTTP10: head.isHTTP10)
        while true {
            var known = KnownField.other
            var next = head.fields.count < cached.fields ? head.fields.cachedLineEnd(within: cached.bytes, &known) : -1
            if next < 0 { next = head.fields.readLineFast(bytes, at: index, &known) }
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
            }
            guard head.fields.appendPending(known) else { return .failure(.upstreamTooManyFields) }
            if known.isCheckedInResponses, let failure = checks.check(bytes, &head) {
                return asUpstreamFailure(failure)
            }
        }
        guard index < bytes.count else { return .needMore }
        if let failure = checks.finish(bytes, method, &head) { return asUpstreamFailure(failure) }
        head.forwardable.end(at: index, isWhole: !head.fields.hasConnectionOptions)
        return .complete(index &+ 2)
    }

    /// A head of fewer than sixteen bytes has no space for a valid field after its status line.
    @inline(never)
    private func readFieldsShort(_ bytes: Span<UInt8>, at start: Int, into head: inout ResponseHead) -> HeadOutcome {
        guard start < bytes.count, !bytes.hasLineEnd(at: start),
            case .failure(let failure) = head.fields.readLine(bytes, at: start)
        else { return .needMore }
        return failOnceLineEnds(failure, bytes, from: start)
    }

    /// Rejects a line only once it is complete.
    @inline(never)
    private func failOnceLineEnds(_ failure: HeadError, _ bytes: Span<UInt8>, from lineStart: Int) -> HeadOutcome {
        bytes.lineFeed(from: lineStart) < bytes.count ? .failure(failure.upstream) : .needMore
    }

    @inline(never)
    private func asUpstreamFailure(_ failure: HeadError) -> HeadOutcome { .failure(failure.upstream) }
}
