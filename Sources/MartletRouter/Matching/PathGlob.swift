/// A compiled path glob: `*` is one segment or a part of one, `**` any number of them.
///
/// - `*` as a whole segment is one non-empty segment; inside a segment it is any number of characters.
/// - `**` is zero or more segments and must be a whole segment.
/// - A trailing slash is an empty last segment: `/v1` and `/v1/` are different paths. `/v1/**` matches both, `/v1/*`
///   neither.
///
/// The worst-case time is proportional to pattern times path: of several wildcards only the last is retried, which
/// suffices because the segments between them are matched as early as possible.
struct PathGlob: Sendable {
    /// One segment of the pattern.
    struct Segment: Sendable {
        enum Kind: Sendable { case literal, any, partial, deep }

        let kind: Kind
        /// The range of its text in ``PathGlob/text``.
        let start: Int
        let end: Int
    }

    /// The normalized pattern.
    let text: [UInt8]
    let segments: [Segment]

    /// - Parameter text: a pattern normalized by ``PathText``.
    init(_ text: [UInt8]) throws(PatternError) {
        var segments: [Segment] = []
        var start = 1
        while start <= text.count {
            let end = text[start...].firstIndex(of: .slash) ?? text.count
            segments.append(Segment(kind: try Self.kind(of: text[start..<end]), start: start, end: end))
            start = end + 1
        }
        self.text = text
        self.segments = segments
    }

    private static func kind(of segment: ArraySlice<UInt8>) throws(PatternError) -> Segment.Kind {
        guard segment.contains(.star) else { return .literal }
        if segment.count == 1 { return .any }
        if segment.elementsEqual([.star, .star]) { return .deep }
        for (left, right) in zip(segment, segment.dropFirst()) where left == .star && right == .star {
            throw PatternError("has '**' inside a segment: it must be a whole segment")
        }
        return .partial
    }

    /// Whether a normalized path, which begins with a slash, matches.
    func matches(_ path: Span<UInt8>) -> Bool {
        Self.matches(path, segments.span, from: 0, to: segments.count, of: text.span)
    }

    /// Whether a path matches the segments of a range; their offsets are into `text`.
    ///
    /// Takes spans, so that an index can store all globs in two arrays.
    static func matches(
        _ path: Span<UInt8>, _ pattern: Span<Segment>, from first: Int, to last: Int, of text: Span<UInt8>
    ) -> Bool {
        // The cursor is the start of a path segment; after the last segment it is `path.count + 1`.
        var cursor = 1
        var index = first
        var retryIndex = -1
        var retryCursor = 0
        while true {
            if index < last, pattern[index].kind == .deep {
                index &+= 1
                if index == last { return true }
                retryIndex = index
                retryCursor = cursor
                continue
            }
            if cursor <= path.count {
                if index < last {
                    let end = path.segmentEnd(from: cursor)
                    if matches(pattern[index], of: text, path, cursor, end) {
                        cursor = end &+ 1
                        index &+= 1
                        continue
                    }
                }
            } else if index == last {
                return true
            }
            if retryIndex < 0 || retryCursor > path.count { return false }
            retryCursor = path.segmentEnd(from: retryCursor) &+ 1
            cursor = retryCursor
            index = retryIndex
        }
    }

    private static func matches(
        _ segment: Segment, of text: Span<UInt8>, _ path: Span<UInt8>, _ start: Int, _ end: Int
    ) -> Bool {
        switch segment.kind {
        case .any: end > start
        case .deep: false
        case .literal: equal(text, segment.start, segment.end, path, start, end)
        case .partial: wild(text, segment, path, start, end)
        }
    }

    private static func equal(
        _ text: Span<UInt8>, _ first: Int, _ last: Int, _ path: Span<UInt8>, _ start: Int, _ end: Int
    ) -> Bool {
        guard last &- first == end &- start else { return false }
        var offset = 0
        while offset < end &- start {
            if text[first &+ offset] != path[start &+ offset] { return false }
            offset &+= 1
        }
        return true
    }

    /// Matches one segment that contains stars.
    private static func wild(
        _ text: Span<UInt8>, _ segment: Segment, _ path: Span<UInt8>, _ start: Int, _ end: Int
    ) -> Bool {
        var index = segment.start
        var cursor = start
        var retryIndex = -1
        var retryCursor = 0
        while cursor < end {
            if index < segment.end, text[index] == .star {
                index &+= 1
                retryIndex = index
                retryCursor = cursor
            } else if index < segment.end, text[index] == path[cursor] {
                index &+= 1
                cursor &+= 1
            } else if retryIndex >= 0 {
                retryCursor &+= 1
                cursor = retryCursor
                index = retryIndex
            } else {
                return false
            }
        }
        while index < segment.end, text[index] == .star { index &+= 1 }
        return index == segment.end
    }
}

extension Span<UInt8> {
    /// The end of the path segment at `start`: the next slash or the end of the path.
    func segmentEnd(from start: Int) -> Int {
        var end = start
        while end < count, self[end] != .slash { end &+= 1 }
        return end
    }
}
