internal import MartletCore
internal import MartletTracing

extension ByteBuffer {
    /// Appends a `traceparent` field line of version 00, and the empty line.
    @inline(__always)
    mutating func append(traceparent trace: TraceID, _ span: SpanID, isSampled: Bool) {
        // Once, so that nothing below looks at the capacity again.
        reserve(80)
        append("traceparent: 00-")
        append(sixteenDigits: trace.high)
        append(sixteenDigits: trace.low)
        append(UInt8(ascii: "-"))
        append(sixteenDigits: span.number)
        append(isSampled ? "-01\r\n\r\n" : "-00\r\n\r\n")
    }
}
