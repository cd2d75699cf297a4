package import MartletCore
package import MartletHTTP

/// How the body of a request is sent to its upstream: in chunks (RFC 9112 §7.1), or unchanged where a length or the
/// frames of a stream delimit it.
package struct UpstreamBodyEncoder {
    private static let lastChunk: StaticString = "0\r\n"

    package let isChunked: Bool

    /// - Parameters:
    ///   - framing: of the request.
    ///   - kind: of the upstream connection.
    @inline(__always)
    package init(_ framing: BodyFraming, on kind: UpstreamKind) {
        isChunked = framing.isChunked && kind != .stream
    }

    /// Appends a piece of the body; nothing for an empty one, whose chunk would end the body.
    @inline(__always)
    package func append(_ piece: UnsafeBufferPointer<UInt8>, to output: inout ByteBuffer) {
        guard piece.count > 0 else { return }
        guard isChunked else { return unsafe output.append(piece) }
        output.append(hexadecimal: UInt(piece.count))
        output.append("\r\n")
        unsafe output.append(piece)
        output.append("\r\n")
    }

    /// Appends the end of the body, with its trailers as lines.
    @inline(__always)
    package func appendEnd(trailers: UnsafeBufferPointer<UInt8>, to output: inout ByteBuffer) {
        guard isChunked else { return }
        output.append(UpstreamBodyEncoder.lastChunk)
        unsafe output.append(trailers)
        output.append("\r\n")
    }

    /// Appends the content of encoded pieces; the end of the body and its trailers are dropped.
    package func decode(_ encoded: UnsafeBufferPointer<UInt8>, into content: inout ByteBuffer) {
        guard isChunked else { return unsafe content.append(encoded) }
        var decoder = ChunkedDecoder()
        var offset = 0
        while true {
            switch unsafe decoder.next(encoded.span, from: &offset) {
            case .data(let range): unsafe content.append(encoded[range])
            case .trailer: continue
            case .end, .needMore, .failure: return
            }
        }
    }
}
