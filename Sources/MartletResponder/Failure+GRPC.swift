package import MartletCore

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

    /// Writes a response that consists of a head alone ("Trailers-Only" in gRPC over HTTP/2); the coarse code is its
    /// message.
    package func writeStatus(
        into out: inout ByteBuffer, requestID: UnsafeBufferPointer<UInt8>, date: borrowing ByteBuffer
    ) {
        out.append("HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nGrpc-Status: ")
        out.append(decimal: statusCode)
        out.append("\r\nGrpc-Message: ")
        out.append(code)
        out.append("\r\nDate: ")
        unsafe out.append(date.bytes)
        out.append("\r\nX-Request-Id: ")
        unsafe out.append(requestID)
        if retryAfter > 0 {
            out.append("\r\nRetry-After: ")
            out.append(decimal: retryAfter)
        }
        if challenge != .none {
            out.append("\r\nWWW-Authenticate: ")
            _ = writeChallenge(into: &out)
        }
        out.append("\r\n\r\n")
    }
}
