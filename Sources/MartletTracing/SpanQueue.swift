internal import MartletCore

/// The spans that wait to be sent, bounded by number and by bytes; it knows neither clock nor network.
package struct SpanQueue: Sendable {
    /// How much of it a document takes.
    package struct Limits: Sendable {
        package var spans: Int
        package var bytes: Int

        package init(spans: Int, bytes: Int) { (self.spans, self.bytes) = (spans, bytes) }
    }

    /// What may wait: ten seconds of 800 requests a second.
    package static let capacity = Limits(spans: SharedBound.spans.total, bytes: SharedBound.spans.bytes)
    /// What is sent together.
    package static let batch = Limits(spans: 512, bytes: 512 * 1024)

    private let capacity: Limits
    private var traces: [FinishedTrace] = []
    private(set) var spans = 0
    private var bytes = 0

    package init(capacity: Limits = capacity) { self.capacity = capacity }

    package var isEmpty: Bool { traces.isEmpty }

    /// Whether there is enough for a whole document.
    package var isFull: Bool { spans >= Self.batch.spans || bytes >= Self.batch.bytes }

    /// Adds the spans of a request.
    /// - Returns: whether there was room.
    package mutating func add(_ trace: FinishedTrace) -> Bool {
        let size = Self.size(of: trace)
        guard spans + trace.spans.count <= capacity.spans, bytes + size <= capacity.bytes else { return false }
        traces.append(trace)
        spans += trace.spans.count
        bytes += size
        return true
    }

    /// Takes as many requests as one document has, the oldest first; at least one, if there is any.
    package mutating func take() -> [FinishedTrace] {
        var (count, taken, size) = (0, 0, 0)
        for trace in traces {
            let more = Self.size(of: trace)
            if count > 0, taken + trace.spans.count > Self.batch.spans || size + more > Self.batch.bytes { break }
            count += 1
            taken += trace.spans.count
            size += more
        }
        let batch = Array(traces.prefix(count))
        traces.removeFirst(count)
        spans -= taken
        bytes -= size
        return batch
    }

    /// Drops everything.
    /// - Returns: how many spans that were.
    package mutating func removeAll() -> Int {
        defer { self = SpanQueue(capacity: capacity) }
        return spans
    }

    private static func size(of trace: FinishedTrace) -> Int {
        trace.spans.reduce(trace.state.count * trace.spans.count) { $0 + $1.size }
    }
}
