/// What a span says about itself, under a name of OpenTelemetry's semantic conventions or one of the gateway.
package enum SpanValue: Sendable, Equatable {
    case text(String)
    case number(Int)
    case flag(Bool)
}

/// A named value of a span.
package struct SpanAttribute: Sendable, Equatable {
    package let name: String
    package let value: SpanValue

    package init(_ name: String, _ value: SpanValue) { (self.name, self.value) = (name, value) }

    package init(_ name: String, _ text: String) { self.init(name, .text(text)) }

    package init(_ name: String, _ number: Int) { self.init(name, .number(number)) }
}

/// Something that took time: a request, or a part of what was done for it.
package struct TraceSpan: Sendable, Equatable {
    /// The numbers are those of OTLP.
    package enum Kind: Int, Sendable {
        case work = 1
        case server = 2
        case client = 3
    }

    package let id: SpanID
    package let parent: SpanID?
    package let name: String
    package let kind: Kind
    /// On the monotonic clock, in nanoseconds.
    package let start: Int64
    package var end: Int64
    package var attributes: [SpanAttribute]
    /// Whether the work has failed.
    package var hasFailed = false

    package init(
        id: SpanID, parent: SpanID?, name: String, kind: Kind, start: Int64, end: Int64,
        attributes: [SpanAttribute] = []
    ) {
        (self.id, self.parent, self.name, self.kind) = (id, parent, name, kind)
        (self.start, self.end, self.attributes) = (start, end, attributes)
    }

    /// About how many bytes it takes, in memory and in a document.
    package var size: Int {
        attributes.reduce(256 + name.utf8.count) { sum, attribute in
            guard case .text(let text) = attribute.value else { return sum + 64 }
            return sum + 64 + text.utf8.count
        }
    }
}

/// The spans of a request that has ended.
package struct FinishedTrace: Sendable {
    package let trace: TraceID
    /// `tracestate` of the parent; may be empty.
    package let state: [UInt8]
    package let spans: [TraceSpan]
    /// What makes a time of the wall clock out of one of the monotonic clock.
    package let clockOffset: Int64

    package init(trace: TraceID, state: [UInt8], spans: [TraceSpan], clockOffset: Int64) {
        (self.trace, self.state, self.spans, self.clockOffset) = (trace, state, spans, clockOffset)
    }
}

/// Why spans are lost.
package enum SpanLoss: String, Sendable, CaseIterable {
    /// More spans came than the collector takes.
    case queueFull = "queue_full"
    /// A request had more of them than one may have.
    case traceFull = "trace_full"
    /// They ended after their request.
    case late
    /// The collector rejected them, or is none.
    case rejected
    /// The collector could not be reached in time.
    case unavailable
    /// The gateway stopped before they could be sent.
    case shutdown
}

/// What takes the spans of requests; its methods return immediately.
package protocol SpanReceiving: Sendable {
    /// Takes the spans of requests that have ended, or drops them.
    func take(_ traces: [FinishedTrace])

    /// Counts spans that are lost.
    func count(_ loss: SpanLoss, _ spans: Int)
}
