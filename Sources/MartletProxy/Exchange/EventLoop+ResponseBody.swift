internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletRouter

/// The body and the trailers of a response, forwarded to the client.
extension EventLoop {
    @inline(__always)
    mutating func consumeResponseBody(_ bytes: UnsafeBufferPointer<UInt8>, from upstream: Int32) -> Int {
        let exchange = upstreams[upstream].exchange
        if isTunnel(exchange) { return unsafe tunnelFromUpstream(bytes, exchange) }
        switch upstreams[upstream].framing {
        case .length:
            let count = min(bytes.count, upstreams[upstream].remaining)
            upstreams[upstream].remaining &-= count
            unsafe forwardResponseBody(unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), exchange)
            if upstreams[upstream].isAlive, upstreams[upstream].exchange == exchange,
                upstreams[upstream].remaining == 0,
                upstreams[upstream].kind != .stream
            {
                finishResponse(upstream)
            }
            return count
        case .untilClose:
            unsafe forwardResponseBody(bytes, exchange)
            return bytes.count
        case .chunked where upstreams[upstream].kind == .stream:
            unsafe forwardResponseBody(bytes, exchange)
            return bytes.count
        case .chunked: return unsafe consumeResponseChunks(bytes, from: upstream)
        case .none: return 0
        }
    }

    mutating func consumeResponseChunks(_ bytes: UnsafeBufferPointer<UInt8>, from upstream: Int32) -> Int {
        let exchange = upstreams[upstream].exchange
        let generation = upstreams[upstream].generation
        var offset = 0
        while upstreams.contains(upstream, generation) {
            switch unsafe upstreams[upstream].decoder.next(bytes.span, from: &offset) {
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
    mutating func collectResponseTrailer(_ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) {
        guard field.known == .other, unsafe KnownField.lookAlike(bytes.span, field.name) == .other,
            unsafe !snapshot.routes.reservedNames.contains(field, in: bytes.span),
            exchanges[exchange].isResponseChunked || exchanges[exchange].isStream
        else { return }
        unsafe exchanges[exchange].responseTrailers.append(bytes[field.name])
        exchanges[exchange].responseTrailers.append(": ")
        unsafe exchanges[exchange].responseTrailers.append(bytes[field.value])
        exchanges[exchange].responseTrailers.append("\r\n")
    }

    /// The same for the trailers of a stream, given as lines.
    mutating func collectResponseTrailers(_ lines: UnsafeBufferPointer<UInt8>, _ exchange: Int32) {
        var index = 0
        while let field = unsafe TrailerLines.next(lines.span, from: &index) {
            unsafe collectResponseTrailer(field, lines, exchange)
        }
    }

    /// Forwards body bytes of the response to the client.
    mutating func forwardResponseBody(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) {
        guard bytes.count > 0 else { return }
        exchanges[exchange].bytesOut &+= bytes.count
        if exchanges[exchange].isResponseChunked {
            staging.append(hexadecimal: UInt(bytes.count))
            staging.append("\r\n")
            unsafe staging.append(bytes)
            staging.append("\r\n")
        } else if bytes.count <= EventLoop.copySize || !staging.isEmpty {
            unsafe staging.append(bytes)
        } else {
            unsafe write(bytes, to: exchanges[exchange].downstream)
        }
    }

    /// Pieces up to this size are written together with what precedes them.
    static let copySize = 16 * 1024
}
