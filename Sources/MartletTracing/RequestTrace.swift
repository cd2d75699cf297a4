private import CLinux
internal import MartletCore

/// The spans of one sampled request: that of the request itself, and its children, which may begin and end on any
/// thread.
package final class RequestTrace: Sendable {
    private struct State {
        var spans: [TraceSpan] = []
        var count: UInt64 = 0
        var isEnded = false
    }

    /// More than any request has: logins have the most.
    package static let maximumSpans = 64

    package let trace: TraceID
    /// The parent that the client named; `nil` at the root of a trace.
    package let parent: SpanID?
    /// `tracestate` of the parent; may be empty.
    package let traceState: [UInt8]
    /// The span of the request itself.
    package let server: SpanID
    private let clockOffset: Int64
    private let source: TraceIDSource
    private let receiver: any SpanReceiving
    private let state = Lock(State())

    /// - Parameter clockOffset: what makes a time of the wall clock out of one of the monotonic clock.
    package init(
        _ trace: TraceID, server: SpanID, parent: SpanID?, traceState: [UInt8] = [], source: TraceIDSource,
        clockOffset: Int64 = TraceTime.clockOffset(), receiver: any SpanReceiving
    ) {
        (self.trace, self.server, self.parent, self.traceState) = (trace, server, parent, traceState)
        self.source = source
        (self.clockOffset, self.receiver) = (clockOffset, receiver)
    }

    /// The ID of one more span. The first is that of the request itself.
    package func nextSpan() -> SpanID {
        let number = state.withLock { state in
            state.count &+= 1
            return state.count
        }
        return source.spanID(number, after: server)
    }

    /// Adds a span that has ended.
    package func add(_ span: TraceSpan) {
        let loss = state.withLock { state -> SpanLoss? in
            if state.isEnded { return .late }
            guard state.spans.count < Self.maximumSpans - 1 else { return .traceFull }
            state.spans.append(span)
            return nil
        }
        if let loss { receiver.count(loss, 1) }
    }

    /// Ends the request: spans that end later are lost.
    /// - Parameter span: that of the request.
    /// - Returns: all its spans.
    package func finish(_ span: TraceSpan) -> FinishedTrace {
        let children = state.withLock { state in
            state.isEnded = true
            defer { state.spans = [] }
            return state.spans
        }
        var spans: [TraceSpan] = []
        spans.reserveCapacity(children.count + 1)
        spans.append(span)
        spans += children
        return FinishedTrace(trace: trace, state: traceState, spans: spans, clockOffset: clockOffset)
    }
}

/// Times of spans.
package enum TraceTime {
    /// The monotonic clock, in nanoseconds.
    package static var now: Int64 { read(CLOCK_MONOTONIC) }

    /// What makes a time of the wall clock out of one of the monotonic clock.
    package static func clockOffset() -> Int64 { read(CLOCK_REALTIME) &- read(CLOCK_MONOTONIC) }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        _ = unsafe clock_gettime(clock, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}

/// A span of a request, to which others are children.
package struct TraceParent: Sendable {
    package let trace: RequestTrace
    package let span: SpanID

    package init(_ trace: RequestTrace, _ span: SpanID) { (self.trace, self.span) = (trace, span) }
}

/// The request that a task works for, as far as its spans are recorded.
package enum TraceScope {
    @TaskLocal private static var current: TraceParent?

    /// Whether the task works for a request that is sampled.
    package static var isSampled: Bool { current != nil }

    /// Runs work for a request.
    package static func within<Value>(_ parent: TraceParent?, _ work: () async -> Value) async -> Value {
        guard let parent else { return await work() }
        return await $current.withValue(parent) { await work() }
    }

    /// Records work as a span, if it is done for a sampled request; what it does in turn are its children.
    /// - Parameters:
    ///   - attributes: are asked for only then.
    ///   - outcome: what its result adds to the attributes.
    ///   - errorType: the code of its error.
    package static func span<Value, Failure: Error>(
        _ name: @autoclosure () -> String, _ kind: TraceSpan.Kind = .client,
        _ attributes: @autoclosure () -> [SpanAttribute] = [], outcome: ((Value) -> [SpanAttribute])? = nil,
        errorType: (Failure) -> String = { SpanError.type(of: $0) },
        _ work: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        guard let parent = current else { return try await work() }
        let id = parent.trace.nextSpan()
        let start = TraceTime.now
        let result: Result<Value, Failure> = await $current.withValue(TraceParent(parent.trace, id)) {
            do throws(Failure) {
                return .success(try await work())
            } catch {
                return .failure(error)
            }
        }
        var span = TraceSpan(
            id: id, parent: parent.span, name: name(), kind: kind, start: start, end: TraceTime.now,
            attributes: attributes())
        switch result {
        case .success(let value): if let outcome { span.attributes += outcome(value) }
        case .failure(let error):
            span.hasFailed = true
            span.attributes.append(SpanAttribute("error.type", errorType(error)))
        }
        parent.trace.add(span)
        return try result.get()
    }
}
