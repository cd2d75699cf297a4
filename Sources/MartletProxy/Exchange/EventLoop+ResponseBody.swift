internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletRouter

/// The body and the trailers of a response, forwarded to the client.
extension EventLoop {
    @inline(__always)
    mutating func consumeResponseBody(
        _ bytes: UnsafeBufferPointer<UInt8>, from upstream: Handle<UpstreamConnection>
    ) -> Int {
        let exchange = upstreams[upstream].exchange
        if isTunnel(exchange) { return unsafe tunnelFromUpstream(bytes, exchange) }
        switch upstreams[upstream].response.consume(bytes.count, isStream: upstreams[upstream].kind == .stream) {
        case .content(let count, let isLast):
            unsafe forwardResponseBody(unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), exchange)
            if isLast, upstreams[upstream].isAlive, upstreams[upstream].exchange == exchange {
                finishResponse(upstream)
            }
            return count
        case .chunks: return unsafe consumeResponseChunks(bytes, from: upstream)
        }
    }

    mutating func consumeResponseChunks(
        _ bytes: UnsafeBufferPointer<UInt8>, from upstream: Handle<UpstreamConnection>
    ) -> Int {
        let exchange = upstreams[upstream].exchange
        var offset = 0
        while upstreams[upstream].isAlive {
            switch unsafe upstreams[upstream].response.decoder.next(bytes.span, from: &offset) {
            case .data(let range): unsafe forwardResponseBody(bytes[range], exchange)
            case .trailer(let field): unsafe collectResponseTrailer(field, bytes, exchange)
            case .end:
                finishResponse(upstream)
                return offset
            case .needMore: return offset
            case .failure(let failure):
                rejectResponse(upstream, failure.code)
                return bytes.count
            }
        }
        return bytes.count
    }

    /// Stores a trailer for forwarding, unless it concerns framing, routing, credentials or identity.
    mutating func collectResponseTrailer(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>
    ) {
        guard
            unsafe ResponseState.forwards(trailer: field, in: bytes.span, reserved: snapshot.routes.reservedNames)
        else { return }
        let isStream = exchanges[exchange].isStream
        unsafe exchanges[exchange].response.append(trailer: field, in: bytes, isStream: isStream)
    }

    /// The same for the trailers of a stream, given as lines.
    mutating func collectResponseTrailers(_ lines: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>) {
        var index = 0
        while let field = unsafe TrailerLines.next(lines.span, from: &index) {
            unsafe collectResponseTrailer(field, lines, exchange)
        }
    }

    /// Forwards body bytes of the response to the client.
    mutating func forwardResponseBody(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>) {
        guard bytes.count > 0 else { return }
        exchanges[exchange].record.bytesOut &+= bytes.count
        let lent = unsafe exchanges.address(of: exchange)
        if unsafe lent.pointee.response.writeBody(bytes, into: &staging) { return }
        unsafe write(bytes, to: exchanges[exchange].downstream)
    }
}
