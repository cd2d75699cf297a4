package import MartletCore
package import MartletHTTP

/// Error responses for gRPC callers, who expect `grpc-status`.
extension Failure {
    /// The gRPC status code for the HTTP status.
    private var statusCode: Int {
        switch status {
        case 400, 408, 415, 426: 3  // INVALID_ARGUMENT
        case 401: 16  // UNAUTHENTICATED
        case 403: 7  // PERMISSION_DENIED
        case 404, 405, 501: 12  // UNIMPLEMENTED
        case 409: 10  // ABORTED
        case 413, 414, 429, 431: 8  // RESOURCE_EXHAUSTED
        case 504: 4  // DEADLINE_EXCEEDED
        case 502, 503: 14  // UNAVAILABLE
        default: 13  // INTERNAL
        }
    }

    /// Writes the trailers that end a call whose response has started.
    package func writeStatusTrailers(into out: inout ByteBuffer) {
        out.append("grpc-status: ")
        out.append(decimal: statusCode)
        out.append("\r\ngrpc-message: ")
        out.append(code)
        out.append("\r\n")
    }

    /// Whether callers of a kind get it as a status: browsers, which send gRPC-Web, follow redirects by themselves.
    package func hasStatus(of kind: GRPCKind) -> Bool { kind == .http2 || status >= 400 }

    /// Writes the head of a response that consists of one alone ("Trailers-Only" in gRPC over HTTP/2, and understood by all
    /// clients of gRPC-Web); the coarse code is its message.
    /// - Parameters:
    ///   - kind: what the caller uses; not `none`.
    ///   - close: whether a connection over HTTP/1 closes afterwards.
    package func writeStatusHead(
        as kind: GRPCKind, into out: inout ByteBuffer, requestID: UnsafeBufferPointer<UInt8>,
        date: borrowing ByteBuffer, close: Bool = false, strictTransportSeconds: Int64 = 0
    ) {
        out.append("HTTP/1.1 200 OK\r\nContent-Type: application/grpc")
        switch kind {
        case .none, .http2: break
        case .web: out.append("-web+proto\r\nCache-Control: no-store\r\nContent-Length: 0")
        case .webText: out.append("-web-text+proto\r\nCache-Control: no-store\r\nContent-Length: 0")
        }
        out.append("\r\nGrpc-Status: ")
        out.append(decimal: statusCode)
        out.append("\r\nGrpc-Message: ")
        out.append(code)
        out.append("\r\nDate: ")
        unsafe out.append(date.bytes)
        out.append("\r\nX-Request-Id: ")
        unsafe out.append(requestID)
        if kind == .http2, retryAfter > 0 {
            out.append("\r\nRetry-After: ")
            out.append(decimal: retryAfter)
        }
        if challenge != .none {
            out.append("\r\nWWW-Authenticate: ")
            _ = writeChallenge(into: &out)
        }
        if kind != .http2 { writeRareFields(into: &out, close: close, strictTransportSeconds) }
        out.append("\r\n\r\n")
    }
}
