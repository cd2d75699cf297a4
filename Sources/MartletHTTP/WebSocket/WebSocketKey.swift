/// `Sec-WebSocket-Key` (RFC 6455 §4.1): 16 bytes in base64.
package enum WebSocketKey {
    /// Appended to the key before hashing (§4.2.2).
    package static let suffix = Array("258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)

    /// Whether a value is 22 characters of base64 and the padding of 16 bytes.
    ///
    /// The decoded bytes do not matter: the response hashes the text.
    package static func isValid(_ bytes: Span<UInt8>, _ value: ByteRange) -> Bool {
        guard value.count == 24 else { return false }
        for index in 0..<24 {
            let byte = bytes[value.start &+ index]
            guard index < 22 ? isBase64(byte) : byte == UInt8(ascii: "=") else { return false }
        }
        return true
    }

    private static func isBase64(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "+")
            || byte == UInt8(ascii: "/")
    }
}
