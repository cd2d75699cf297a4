/// Why a frame header is invalid (RFC 6455 §5).
package enum WebSocketViolation: Equatable, Sendable, CaseIterable {
    /// A client's frame without a mask (§5.1).
    case unmaskedClientFrame
    /// A server's frame with one (§5.1).
    case maskedServerFrame
    /// A control frame over 125 bytes (§5.5).
    case longControlFrame
    /// A control frame that is a fragment (§5.5).
    case fragmentedControlFrame
    /// A Close frame with half a status code (§5.5.1).
    case halfStatusCode
    /// An extension bit without an extension (§5.2).
    case reservedBits
    /// A length in more bytes than it needs, or over 2⁶³ − 1 (§5.2).
    case badLength
}
