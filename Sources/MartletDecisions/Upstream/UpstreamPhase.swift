/// What a connection to an upstream carries.
@usableFromInline package enum UpstreamKind: Sendable {
    /// A connection that carries one request after the other.
    case http1
    /// A connection whose streams carry the requests.
    case http2
    /// One stream of such a connection.
    case stream
}

/// What a connection to an upstream waits for.
@usableFromInline package enum UpstreamPhase: Sendable {
    case connecting
    /// Connected; the TLS handshake is in progress.
    case handshake
    case idle, awaitingHead, body
    /// An HTTP/2 connection, which carries frames.
    case frames
}
