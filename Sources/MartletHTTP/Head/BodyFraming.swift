/// Where a message's body ends (RFC 9112 §6.3).
package enum BodyFraming: Sendable, Equatable {
    /// There is no body.
    case none
    /// So many bytes follow; 0 when the sender said so.
    case length(Int)
    case chunked
    /// Everything until the connection closes; answers only.
    case untilClose
}
