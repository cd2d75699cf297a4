package import MartletCore

/// A status code of a Close frame (RFC 6455 §7.4.1).
package struct WebSocketStatus: Equatable, Sendable {
    package let code: UInt16

    package init(code: UInt16) { self.code = code }

    package static let goingAway = WebSocketStatus(code: 1001)
    package static let protocolError = WebSocketStatus(code: 1002)
    /// The gateway's own code, from the private-use range (§7.4.2): the credential has expired or was revoked.
    package static let credentialEnded = WebSocketStatus(code: 4401)
}

extension ByteBuffer {
    /// Appends a Close frame (RFC 6455 §5.5.1).
    ///
    /// - Parameters:
    ///   - reason: ASCII, truncated to 123 bytes.
    ///   - mask: the masking key of a client's frame (§5.3); `nil` for a server's.
    package mutating func append(webSocketClose status: WebSocketStatus, _ reason: StaticString, mask: UInt32?) {
        let text = min(reason.utf8CodeUnitCount, 123)
        append(0x88 as UInt8)
        append(UInt8(text &+ 2) | (mask == nil ? 0 : 0x80))
        if let mask { append(bigEndian: mask) }
        append(masked: UInt8(truncatingIfNeeded: status.code >> 8), at: 0, mask)
        append(masked: UInt8(truncatingIfNeeded: status.code), at: 1, mask)
        for index in 0..<text { append(masked: unsafe reason.utf8Start[index], at: index &+ 2, mask) }
    }

    private mutating func append(bigEndian value: UInt32) {
        for shift in stride(from: 24, through: 0, by: -8) { append(UInt8(truncatingIfNeeded: value >> UInt32(shift))) }
    }

    private mutating func append(masked byte: UInt8, at index: Int, _ mask: UInt32?) {
        guard let mask else { return append(byte) }
        append(byte ^ UInt8(truncatingIfNeeded: mask >> UInt32(24 &- 8 &* (index & 3))))
    }
}
