internal import MartletCore
internal import MartletTracing

extension ByteBuffer {
    /// Appends a `traceparent` field line of version 00.
    @inline(__always)
    mutating func append(traceparent trace: TraceID, _ span: SpanID, isSampled: Bool) {
        append("traceparent: 00-")
        append(sixteenDigits: trace.high)
        append(sixteenDigits: trace.low)
        append("-")
        append(sixteenDigits: span.number)
        if isSampled {
            append("-01\r\n")
        } else {
            append("-00\r\n")
        }
    }
}
