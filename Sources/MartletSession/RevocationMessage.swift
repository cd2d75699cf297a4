/// The message by which instances publish ended sessions: their revocation IDs, 16 hexadecimal digits each; behind
/// ``changePrefix``, those of sessions and subjects that have changed but go on.
package enum RevocationMessage {
    /// The largest message that a subscriber accepts, in bytes.
    package static let maximumBytes = 16 * 1024
    /// The maximum number of IDs in a message that is published.
    static let maximumCount = 512
    private static let digits = 16
    /// Begins a message about changed sessions; it contains no hexadecimal digits only.
    static let changePrefix = "changed:"

    /// The name of the Redis channel.
    package static func channel(prefix: String) -> String { prefix + "revoked" }

    /// Encodes a message of at most 512 IDs, like the scripts.
    package static func bytes(_ ids: [UInt64]) -> [UInt8] {
        ids.prefix(maximumCount).flatMap { id in
            Hexadecimal.encode(stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: id >> $0) })
        }
    }

    /// Encodes a message about at most 512 sessions and subjects that have changed.
    package static func bytes(changed ids: [UInt64]) -> [UInt8] { Array(changePrefix.utf8) + bytes(ids) }

    /// Decodes a message about sessions that have changed; `nil` if it is malformed, or another message.
    package static func changedNumbers(in message: [UInt8]) -> [UInt64]? {
        guard message.starts(with: changePrefix.utf8) else { return nil }
        return numbers(in: Array(message.dropFirst(changePrefix.utf8.count)))
    }

    /// Decodes a message about sessions that have ended; `nil` if it is malformed, or another message.
    package static func numbers(in message: [UInt8]) -> [UInt64]? {
        guard !message.isEmpty, message.count <= maximumBytes, message.count % digits == 0 else { return nil }
        var ids: [UInt64] = []
        for start in stride(from: 0, to: message.count, by: digits) {
            guard let id = Hexadecimal.value(message[start..<(start + digits)]) else { return nil }
            ids.append(id)
        }
        return ids
    }
}
