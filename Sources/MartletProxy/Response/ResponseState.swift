internal import MartletCore
internal import MartletHTTP

/// The response of an exchange, as the client gets it.
struct ResponseState: ~Copyable {
    /// Pieces of a body up to this many bytes are sent together with what precedes them.
    static let copySize = 16 * 1024

    /// 0 until it is known.
    var status = 0
    var hasStarted = false
    var isChunked = false
    /// Close the connection after the response.
    var closesDownstream = false
    /// The end of the response was submitted to the stream.
    var hasEndedStream = false
    /// What it keeps of its route; few exchanges keep any of it.
    var rules = ExchangeRouteRules()
    /// Trailer lines.
    var trailers = ByteBuffer()

    @inline(__always)
    mutating func begin() {
        status = 0
        hasStarted = false
        isChunked = false
        closesDownstream = false
        hasEndedStream = false
        trailers.removeAll()
    }

    /// Starts a response that the gateway writes as a whole.
    @inline(__always)
    mutating func start(status: Int, closes: Bool) {
        self.status = status
        hasStarted = true
        closesDownstream = closes
    }

    /// Starts an upstream's response, and chooses how the client learns where its body ends.
    /// - Parameters:
    ///   - framing: of the upstream's body.
    ///   - closes: whether the connection closes after the response in any case.
    @inline(__always)
    mutating func start(status: Int, framing: BodyFraming, isHTTP10: Bool, isStream: Bool, closes: Bool) {
        let isUnbounded = framing.isUnbounded
        isChunked = isUnbounded && !isHTTP10 && !isStream
        // HTTP/1.0 has no chunks: the body ends with the connection.
        start(status: status, closes: closes || (isUnbounded && isHTTP10))
    }

    // MARK: Body

    /// Writes bytes of the body, framed for the client.
    /// - Returns: whether they were written; a long piece is to be sent without being copied.
    @inline(__always)
    func writeBody(_ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) -> Bool {
        if isChunked {
            unsafe ResponseState.writeChunk(bytes, into: &out)
        } else if bytes.count <= ResponseState.copySize || !out.isEmpty {
            unsafe out.append(bytes)
        } else {
            return false
        }
        return true
    }

    /// Writes one chunk (RFC 9112 §7.1); of no bytes it would be the last one.
    @inline(__always)
    private static func writeChunk(_ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        out.append(hexadecimal: UInt(bytes.count))
        out.append("\r\n")
        unsafe out.append(bytes)
        out.append("\r\n")
    }

    /// Writes the last chunk and the trailers, if the body is chunked.
    @inline(__always)
    func writeLastChunk(into out: inout ByteBuffer) {
        guard isChunked else { return }
        out.append("0\r\n")
        unsafe out.append(trailers.bytes)
        out.append("\r\n")
    }

    // MARK: Trailers

    /// Whether a trailer is forwarded: not one that concerns framing, routing, credentials or identity.
    @inline(__always)
    static func forwards(trailer field: HeadField, in bytes: Span<UInt8>, reserved: FieldNameSet) -> Bool {
        guard field.known == .other, KnownField.lookAlike(bytes, field.name) == .other else { return false }
        return !reserved.contains(field, in: bytes)
    }

    /// Stores a trailer for the end of the response, if the client's protocol has trailers.
    mutating func append(trailer field: HeadField, in bytes: UnsafeBufferPointer<UInt8>, isStream: Bool) {
        guard isChunked || isStream else { return }
        unsafe trailers.append(bytes[field.name])
        trailers.append(": ")
        unsafe trailers.append(bytes[field.value])
        trailers.append("\r\n")
    }
}
