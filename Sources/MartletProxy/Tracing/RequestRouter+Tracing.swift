internal import MartletHTTP

extension RequestRouter {
    /// Notes what the head of a request says that goes no further, for its span.
    @inline(never)
    mutating func noteHead(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        guard loop.context.tracing.isOn else { return }
        unsafe RequestTracing.noteHead(of: exchange, head, bytes, &loop)
    }
}
