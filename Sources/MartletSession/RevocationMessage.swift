/// What instances tell each other about sessions that have ended: their numbers, 16 hexadecimal digits each.
package enum RevocationMessage {
    /// As much as a subscriber takes.
    package static let maximumBytes = 16 * 1024
    private static let digits = 16

    /// The channel on which it is published.
    package static func channel(prefix: String) -> String { prefix + "revoked" }

    /// Writes a message; at most 512 numbers, as scripts do.
    package static func bytes(_ numbers: [UInt64]) -> [UInt8] {
        numbers.prefix(512).flatMap { number in
            Hexadecimal.encode(stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) })
        }
    }

    /// Reads a message; `nil` for anything that no instance wrote.
    package static func numbers(in message: [UInt8]) -> [UInt64]? {
        guard !message.isEmpty, message.count <= maximumBytes, message.count % digits == 0 else { return nil }
        var numbers: [UInt64] = []
        for start in stride(from: 0, to: message.count, by: digits) {
            guard let number = Hexadecimal.value(message[start..<(start + digits)]) else { return nil }
            numbers.append(number)
        }
        return numbers
    }
}
