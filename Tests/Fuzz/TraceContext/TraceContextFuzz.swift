import MartletTracing

/// What is accepted of a trace context is written to something that reads as the same.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let context = TraceContext(traceparent: bytes) {
        let written = Array(context.text.utf8)
        precondition(written.count == TraceContext.length && TraceContext(traceparent: written) == context)
        precondition(context.trace.isValid && context.parent.isValid)
        precondition(bytes.count >= TraceContext.length && bytes[3..<52] == written[3..<52])
    }
    // Several fields, one a line.
    let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { Array($0) }
    let state = TraceState.joined(lines)
    precondition(state.count <= TraceState.maximumBytes && TraceState.joined([state]) == state)
    precondition(state.allSatisfy { (0x20...0x7E).contains($0) })
    return 0
}
