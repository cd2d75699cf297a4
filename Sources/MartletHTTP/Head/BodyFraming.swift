/// Where a message's body ends (RFC 9112 §6.3).
package enum BodyFraming: Sendable, Equatable {
    /// There is no body.
    case none
    /// A body of this many bytes; 0 is an explicit length.
    case length(Int)
    case chunked
    /// Until the connection closes; responses only.
    case untilClose
}
