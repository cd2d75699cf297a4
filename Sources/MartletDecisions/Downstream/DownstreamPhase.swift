/// What a downstream connection waits for.
@usableFromInline package enum DownstreamPhase: Sendable {
    /// Waiting for the PROXY protocol header.
    case proxyHeader
    /// The TLS handshake is in progress.
    case handshake
    /// Waiting for a request head, or in the middle of one.
    case head
    /// The head is in `input` while the request waits (``Suspension``).
    case waiting
    /// A request is in progress: its body is received, or its response is sent.
    case exchange
    /// Answered and closed for writing; input is discarded for a moment, so that the response arrives.
    case lingering
    /// An HTTP/2 connection, which carries frames.
    case frames
}
