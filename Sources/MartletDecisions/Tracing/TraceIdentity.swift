package import MartletTracing

/// The trace of a request, and the span that its upstream gets as parent.
package struct TraceIdentity: BitwiseCopyable {
    package let trace: TraceID
    package let span: SpanID
    package let isSampled: Bool

    package init(trace: TraceID, span: SpanID, isSampled: Bool) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
    }
}
